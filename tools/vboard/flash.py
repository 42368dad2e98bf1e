"""The directory that is a virtual board's flash: the build in it, and a configuration."""

import json
from pathlib import Path

from tools import tree
from tools.build import BOARD, EXAMPLE, PROJECT, build

CONFIG = "config.json"


def make_flash(
    root: Path, *, config: str | None = None, source: bool = False, built: Path = BOARD
) -> Path:
    """Build, and deploy to the directory `root`; `config` is the text of its config.json."""
    build(built, source=source)
    tree.install(built, root)
    if config is not None:
        (root / CONFIG).write_text(config)
    return root


def configuration(root: Path, given: Path | None) -> str | None:
    """The configuration to put into flash: the file given, nothing where flash has one, the
    project's config.json, or else the example with a broker on this computer.

    OSError naming the file given when it cannot be read.
    """
    if given:
        try:
            return given.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise OSError(f"the configuration {given}: {reason}") from None
    if (root / CONFIG).exists():
        return None
    if (PROJECT / CONFIG).exists():
        return (PROJECT / CONFIG).read_text()
    example = json.loads((PROJECT / EXAMPLE).read_text())
    example["mqtt"]["host"] = "127.0.0.1"
    return json.dumps(example, indent=2)
