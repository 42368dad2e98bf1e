"""package.json installs the core alone, and all of it."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def package():
    return json.loads((ROOT / "package.json").read_text())


def test_every_core_module_is_listed_once(package):
    targets = [target for target, _ in package["urls"]]
    core = sorted(f"millpond/{path.name}" for path in (ROOT / "lib" / "millpond").glob("*.py"))
    assert sorted(targets) == core


def test_every_source_exists(package):
    for target, source in package["urls"]:
        assert source == f"lib/{target}" and (ROOT / source).is_file()


def test_version_is_the_packages(package):
    text = (ROOT / "lib" / "millpond" / "__init__.py").read_text()
    assert f'__version__ = "{package["version"]}"' in text
