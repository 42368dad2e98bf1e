"""docs/field-reports.md: every report has a test, and the page says which."""

import pytest
import typer

from tools import field_reports
from tools.field_report_lines import GROUPS

ADVICE = "run `python -m tools field-reports`"

TESTS = '''
def test_both_ways():
    """Report: lib#94, mq/MsgQueue."""

def case_in_a_longer_docstring():
    """It waits.

    Report: mp#1.
    Report: mp#2, mp#3
    """

def test_that_only_speaks_of_one():
    """The Report: mp#4 is not answered, nor is mp#5."""

def helper():
    """Report: mp#6."""
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where `command` writes its page."""
    monkeypatch.setattr(field_reports, "DOCUMENT", tmp_path / "docs" / "field-reports.md")
    return tmp_path


def test_every_report_has_a_test_and_every_name_is_a_report():
    assert field_reports.faults(field_reports.collect()) == []


def test_the_page_is_todays():
    assert field_reports.DOCUMENT.exists(), ADVICE
    page = field_reports.DOCUMENT.read_text(encoding="utf-8")
    assert page == field_reports.markdown(field_reports.collect()), ADVICE


def test_no_report_is_listed_twice():
    assert len(set(field_reports.reports())) == len(field_reports.reports())


def test_a_test_or_case_names_reports_in_lines_of_its_docstring():
    assert field_reports.named_in(TESTS) == {
        "test_both_ways": ["lib#94", "mq/MsgQueue"],
        "case_in_a_longer_docstring": ["mp#1", "mp#2", "mp#3"],
    }


def test_tests_of_every_folder_are_read(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "cases_one.py").write_text("def case_a():\n    'Report: mp#1.'\n")
    (tmp_path / "test_two.py").write_text("def test_b():\n    'Report: mp#1.'\n")
    (tmp_path / "kit.py").write_text("def test_c():\n    'Report: mp#1.'\n")
    expected = {"mp#1": ["deep/cases_one.py::case_a", "test_two.py::test_b"]}
    assert field_reports.collect(tmp_path) == expected


@pytest.mark.parametrize("name", ["lib#94", "mp#5199", "mq/MsgQueue"])
def test_a_report_without_a_test_is_a_fault(name):
    shown = field_reports.collect()
    del shown[name]
    assert field_reports.faults(shown) == [f"{name}: no test names it"]


def test_a_name_that_is_no_report_is_a_fault():
    shown = {**field_reports.collect(), "mp#0": ["a.py::test_a", "b.py::test_b"]}
    expected = "mp#0: not in tools/field_report_lines.py, but named by a.py::test_a, b.py::test_b"
    assert field_reports.faults(shown) == [expected]


def test_the_page_has_a_row_for_each_kind_with_the_reports_in_full():
    page = field_reports.markdown({"lib#94": ["core/test_a.py::test_b", "core/test_a.py::test_c"]})
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == sum(len(rows) for _, rows in GROUPS) + 2 * len(GROUPS)
    row = next(row for row in rows if row.startswith("| micropython-lib#94 |"))
    assert row.endswith("| `core/test_a.py::test_b`<br>`core/test_a.py::test_c` |")
    assert "| micropython-mqtt, its code (MsgQueue) |" in page


def test_the_command_writes_the_page(folder, capsys):
    field_reports.command()
    page = field_reports.DOCUMENT.read_text(encoding="utf-8")
    assert page == field_reports.markdown(field_reports.collect())
    assert f"{len(field_reports.reports())} reports" in capsys.readouterr().out


def test_the_command_writes_nothing_when_something_is_at_fault(folder, monkeypatch, capsys):
    monkeypatch.setattr(field_reports, "collect", lambda: {"mp#0": ["a.py::test_a"]})
    with pytest.raises(typer.Exit) as stopped:
        field_reports.command()
    assert stopped.value.exit_code == 1 and not field_reports.DOCUMENT.exists()
    errors = capsys.readouterr().err.splitlines()
    assert "lib#94: no test names it" in errors
    assert len(errors) == len(field_reports.reports()) + 1
