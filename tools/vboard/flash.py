"""The directory that is a virtual board's flash: the build in it, and a configuration.

A deploy writes over what it finds and removes what would be imported in its place, so that a
directory a person named by mistake is refused before anything is written: `reason_against`.
"""

import json
from pathlib import Path

from tools import tree
from tools.build import BOARD, EXAMPLE, PROJECT, build

CONFIG = "config.json"
_OURS = tuple(PROJECT / name for name in ("firmware", "lib", "tools", "tests_host", "docs", ".git"))
_SOURCE_MARKS = (".git", "pyproject.toml")


def make_flash(
    root: Path, *, config: str | None = None, source: bool = False, built: Path = BOARD
) -> Path:
    """Build, and deploy to the directory `root`; `config` is the text of its config.json."""
    build(built, source=source)
    tree.install(built, root)
    if config is not None:
        (root / CONFIG).write_text(config)
    return root


def reason_against(root: Path) -> str:
    """Why the directory may not become a flash, or an empty text.

    It may where it is not there yet, is empty but for a config.json, or has been a flash before
    (tree.MANIFEST is in it); never where it is, holds or lies in sources.
    """
    root = root.resolve()
    if root.exists() and not root.is_dir():
        return "it is not a directory"
    if PROJECT.is_relative_to(root):
        return "millpond's own sources lie in it"
    if any((root / mark).exists() for mark in _SOURCE_MARKS):
        return "it holds sources"
    if any(root.is_relative_to(ours) for ours in _OURS):
        return "it is one of the folders of millpond's own sources"
    if not root.exists() or (root / tree.MANIFEST).is_file():
        return ""
    others = sorted(path.name for path in root.iterdir() if path.name != CONFIG)
    if others:
        return f"it is not empty ({others[0]}) and no virtual board's flash ({tree.MANIFEST})"
    return ""


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
