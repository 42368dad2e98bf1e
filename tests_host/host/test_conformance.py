"""docs/conformance.md: every requirement on DispatchQueue has a test, and the page says which."""

import pytest
import typer

from millpond.dispatch import DispatchQueue
from tools import conformance
from tools.conformance_lines import CHAPTERS, DECISIONS

ADVICE = "run `python -m tools conformance`"
MISSING_IN_THE_SEED = {3, 46, 52, 56}

THREE_TESTS = '''
def test_SRS_09_001_D12_both():
    """SRS_09_004, D2: and SRS_09_005."""

def test_none():
    """D, SRS_09, 3D4, D5x"""

def helper_D9():
    pass
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where `command` finds its tests and writes its page."""
    monkeypatch.setattr(conformance, "DOCUMENT", tmp_path / "docs" / "conformance.md")
    return tmp_path


def test_every_requirement_has_a_test_and_every_name_is_a_requirement():
    assert conformance.faults(conformance.collect()) == []


def test_the_page_is_todays():
    assert conformance.DOCUMENT.exists(), ADVICE
    page = conformance.DOCUMENT.read_text(encoding="utf-8")
    assert page == conformance.markdown(conformance.collect()), ADVICE


def test_the_list_has_every_number_once():
    numbers = sorted(row[0] for _, rows in CHAPTERS for row in rows)
    assert numbers == [n for n in range(1, 70) if n not in MISSING_IN_THE_SEED]
    assert [row[0] for row in DECISIONS] == list(range(1, 18))


def test_a_requirement_is_met_in_a_method_that_exists():
    rows = [row for _, rows in CHAPTERS for row in rows] + list(DECISIONS)
    for row in rows:
        assert callable(getattr(DispatchQueue, row[-1])), row


def test_a_test_names_requirements_in_its_name_and_its_docstring():
    assert conformance.named_in(THREE_TESTS) == {
        "test_SRS_09_001_D12_both": {"SRS_09_001", "D12", "SRS_09_004", "D2", "SRS_09_005"},
        "test_none": set(),
    }


def test_only_the_tests_of_DispatchQueue_are_read(tmp_path):
    (tmp_path / "test_dispatch_one.py").write_text("def test_D1_a(): pass\n")
    (tmp_path / "test_dispatch_two.py").write_text("def test_b():\n    'D1'\n")
    (tmp_path / "test_other.py").write_text("def test_D1_c(): pass\n")
    assert conformance.collect(tmp_path) == {"D1": ["test_D1_a", "test_b"]}


@pytest.mark.parametrize("name", ["SRS_09_001", "SRS_09_069", "D1", "D17"])
def test_a_requirement_without_a_test_is_a_fault(name):
    shown = conformance.collect()
    del shown[name]
    assert conformance.faults(shown) == [f"{name}: no test names it"]


@pytest.mark.parametrize("name", ["SRS_09_003", "SRS_09_070", "SRS_09_1", "D0", "D18"])
def test_a_name_that_is_no_requirement_is_a_fault(name):
    shown = {**conformance.collect(), name: ["test_a", "test_b"]}
    expected = f"{name}: no such requirement, but named by test_a, test_b"
    assert conformance.faults(shown) == [expected]


def test_the_page_has_a_row_a_requirement():
    page = conformance.markdown(conformance.collect())
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    firsts = {row.split(" | ")[0] for row in rows}
    numbered = {f"| {name.removeprefix('SRS_09_')}" for name in conformance.requirements()}
    assert numbered <= firsts and len(numbered) == 65 + 17
    row = next(row for row in rows if row.startswith("| 036 |"))
    assert "| `DispatchQueue.do_work` | `test_" in row and row.endswith("` |")
    assert page.index("| D11 |") < page.index("## Declared deviations") < page.index("| D12 |")


def test_the_command_writes_the_page(folder, capsys):
    conformance.command()
    page = conformance.DOCUMENT.read_text(encoding="utf-8")
    assert page == conformance.markdown(conformance.collect())
    assert "82 requirements" in capsys.readouterr().out


def test_the_command_writes_nothing_when_something_is_at_fault(folder, monkeypatch, capsys):
    monkeypatch.setattr(conformance, "collect", lambda: {"D18": ["test_a"]})
    with pytest.raises(typer.Exit) as stopped:
        conformance.command()
    assert stopped.value.exit_code == 1 and not conformance.DOCUMENT.exists()
    errors = capsys.readouterr().err.splitlines()
    assert "SRS_09_001: no test names it" in errors and len(errors) == 82 + 1
