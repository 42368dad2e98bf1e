"""The README's table and config.example.json say what the table in firmware/config.py says."""

import json

import pytest
import typer
from typer.testing import CliRunner

from firmware import config
from tools import config_table

ADVICE = "run `python -m tools config-table --write`"


def test_the_readme_has_todays_table():
    assert config_table.README.exists(), "README.md is missing"
    readme = config_table.README.read_text(encoding="utf-8")
    try:
        table = config_table.table_in(readme)
    except ValueError as error:
        pytest.fail(str(error))
    assert table == config_table.markdown(), ADVICE


def test_the_example_is_todays():
    assert config_table.EXAMPLE.read_text(encoding="utf-8") == config_table.example(), ADVICE


def test_the_example_loads_and_is_the_defaults():
    loaded = config.load(str(config_table.EXAMPLE))
    for key, default, *_ in config.TABLE:
        if default is not None:
            assert loaded[key] == default


def test_the_example_has_every_key():
    sections = json.loads(config_table.EXAMPLE.read_text(encoding="utf-8"))
    keys = [f"{section}.{name}" for section, names in sections.items() for name in names]
    assert keys == [row[0] for row in config.TABLE]


def test_the_table_has_one_row_a_key_and_four_cells_a_row():
    head, rule, *rows = config_table.markdown().split("\n")
    assert [row.split(" | ")[0] for row in rows] == [f"| `{row[0]}`" for row in config.TABLE]
    for row in (head, rule, *rows):
        assert row.replace("\\|", "").count("|") == 5
    assert "| `mqtt.host` | *must be given* |" in "\n".join(rows)


def test_what_a_command_may_change_is_marked():
    marked = [row.split("`")[1] for row in config_table.markdown().split("\n") if "† |" in row]
    assert sorted(marked) == sorted(config.SETTABLE)


def test_only_what_is_between_the_markers_is_replaced():
    readme = f"above\n{config_table.BEGIN}\nold\n{config_table.END}\nbelow\n"
    new = config_table.with_table(readme)
    assert new.startswith(f"above\n{config_table.BEGIN}\n| key |")
    assert new.endswith(f"|\n{config_table.END}\nbelow\n")
    assert config_table.table_in(new) == config_table.markdown()
    assert config_table.with_table(new) == new


@pytest.mark.parametrize(
    "readme",
    [
        "no markers",
        config_table.BEGIN,
        config_table.END,
        config_table.END + config_table.BEGIN,
        config_table.BEGIN * 2 + config_table.END,
    ],
)
def test_missing_markers_are_named(readme):
    with pytest.raises(ValueError, match="config-table:"):
        config_table.with_table(readme)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """README.md and config.example.json of a project of their own."""
    monkeypatch.setattr(config_table, "README", tmp_path / "README.md")
    monkeypatch.setattr(config_table, "EXAMPLE", tmp_path / "config.example.json")
    text = f"# é\n{config_table.BEGIN}\n{config_table.END}\n"
    config_table.README.write_text(text, encoding="utf-8")


def run(*arguments):
    app = typer.Typer()
    app.command()(config_table.command)
    return CliRunner().invoke(app, arguments)


def test_write_brings_both_files_up_to_date(files):
    assert run("--write").exit_code == 0
    readme = config_table.README.read_text(encoding="utf-8")
    assert config_table.table_in(readme) == config_table.markdown()
    assert json.loads(config_table.EXAMPLE.read_text())["mqtt"]["port"] == 1883


def test_without_write_both_are_printed_and_nothing_is_written(files):
    before = config_table.README.read_text(encoding="utf-8")
    result = run()
    assert result.exit_code == 0
    assert result.stdout == config_table.markdown() + "\n\n" + config_table.example()
    assert config_table.README.read_text(encoding="utf-8") == before
    assert not config_table.EXAMPLE.exists()


def test_write_without_markers_or_readme_fails_and_writes_nothing(files):
    config_table.README.write_text("no markers")
    result = run("--write")
    assert result.exit_code == 1 and "config-table:begin" in result.output
    config_table.README.unlink()
    result = run("--write")
    assert result.exit_code == 1 and "README.md" in result.output
    assert not config_table.EXAMPLE.exists()
