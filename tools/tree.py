"""What a board's file tree is to hold, and what to do to one that holds something else.

A manifest maps each file that we put on a board to its SHA-256. It stands on the board itself,
in MANIFEST, so that a later deploy can tell what is ours to remove from what is the user's.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

MANIFEST = "deployed.json"
Manifest = dict[str, str]


def digest(path: Path) -> str:
    """A file's SHA-256 in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def scan(root: Path) -> Manifest:
    """The manifest of all files below `root`."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    found = {path.relative_to(root).as_posix(): digest(path) for path in files}
    found.pop(MANIFEST, None)
    return found


def dump(manifest: Manifest) -> bytes:
    """The text of a MANIFEST file."""
    return (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()


def parse(data: bytes) -> Manifest:
    """A manifest from its file; {} when it is none, as after a write that was cut off."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {path: text for path, text in found.items() if isinstance(text, str)}


@dataclass
class Plan:
    """What turns a board's tree into ours, in the order of the fields."""

    remove: list[str] = field(default_factory=list)
    copy: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)


def shadows(path: str) -> list[str]:
    """The files that MicroPython would import in place of `path`."""
    stem, dot, kind = path.rpartition(".")
    return [stem + dot + "py"] if kind == "mpy" else []


def plan(wanted: Manifest, ours: Manifest, present: Manifest) -> Plan:
    """`wanted`: the new tree; `ours`: what was deployed before; `present`: what the board holds
    now, as far as it concerns us. Removed is what we once deployed and do not want any more, and
    what would be imported in place of a file of ours; nothing else."""
    stale = {path for path in ours if path in present and path not in wanted}
    stale |= {
        shadow
        for path in wanted
        for shadow in shadows(path)
        if shadow in present and shadow not in wanted
    }
    same = [path for path in wanted if present.get(path) == wanted[path]]
    copy = [path for path in wanted if present.get(path) != wanted[path]]
    return Plan(sorted(stale), sorted(copy), sorted(same))


def of_interest(wanted: Manifest, ours: Manifest) -> list[str]:
    """The paths whose state on the board `plan` must know."""
    paths = set(wanted) | set(ours)
    paths.update(shadow for path in wanted for shadow in shadows(path))
    return sorted(paths)


def folders(paths: list[str]) -> list[str]:
    """All folders above the files, outermost first."""
    above = {parent.as_posix() for path in paths for parent in Path(path).parents}
    above.discard(".")
    return sorted(above)


def install(tree: Path, root: Path) -> Plan:
    """Do to the directory `root` what a deploy of `tree` does to a board."""
    root.mkdir(parents=True, exist_ok=True)
    wanted = scan(tree)
    manifest = root / MANIFEST
    ours = parse(manifest.read_bytes()) if manifest.exists() else {}
    files = [path for path in of_interest(wanted, ours) if (root / path).is_file()]
    todo = plan(wanted, ours, {path: digest(root / path) for path in files})
    manifest.write_bytes(dump(ours | wanted))  # what is cut short is known to be ours
    for path in todo.remove:
        (root / path).unlink()
    for folder in reversed(folders(todo.remove)):
        if not any((root / folder).iterdir()):
            (root / folder).rmdir()
    for path in todo.copy:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes((tree / path).read_bytes())
    manifest.write_bytes(dump(wanted))
    return todo
