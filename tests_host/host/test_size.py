"""`python -m tools size`: what is typed, what is shown, and the picture."""

import json

import numpy
import pytest
import typer
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from typer.testing import CliRunner

from tools import __main__ as command_line
from tools import shown, size, size_chart, sizing
from tools.sizing import Plan

app = typer.Typer()
app.command()(size.command)


def run(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def asked(*arguments):
    code, out, _ = run(*arguments, "--json")
    assert code == 0
    return json.loads(out)


# -- what is typed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("4096", 4096),
        ("96B", 96),
        ("512K", 512 << 10),
        ("512kb", 512 << 10),
        ("2MB", 2097152),
        (" 2 mib ", 2097152),
        ("1.5M", 1572864),
        ("1GiB", 1 << 30),
        ("0.5KiB", 512),
    ],
)
def test_sizes(text, bytes_):
    assert size.parse_size("buffer", text) == bytes_


@pytest.mark.parametrize(
    "text", ["", "MB", "2XB", "-1K", "2 M B", "1e6", "2TB", "0x10", "1,000", "9" * 21, "٣"]
)
def test_what_is_no_size_is_named(text):
    with pytest.raises(ValueError) as error:
        size.parse_size("buffer", text)
    assert repr(text) in str(error.value) and "such as 4096, 512K, 2MB or 1GiB" in str(error.value)


def test_part_of_a_byte_is_named():
    with pytest.raises(ValueError, match="page '1.3': 1.3 bytes, a whole number"):
        size.parse_size("page", "1.3")


@pytest.mark.parametrize(
    ("text", "dollars"), [("0.19", 0.19), ("$2", 2), ("0.5/MB", 0.5), ("0", 0)]
)
def test_prices(text, dollars):
    assert size.parse_price("price", text) == dollars


@pytest.mark.parametrize("text", ["-1", "1/GB", "nan", "1e3", "$", ""])
def test_what_is_no_price_is_named(text):
    with pytest.raises(ValueError, match="dollars a megabyte expected"):
        size.parse_price("price", text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("float32", "", None),
        ("float32", "-1.5", -1.5),
        ("uint16", "237", 237),
        ("bool", "true", 1),
        ("bool", "false", 0),
    ],
)
def test_values(kind, text, value):
    assert size.parse_value(kind, text) == value


@pytest.mark.parametrize(("kind", "text"), [("float32", "nan"), ("float32", "x"), ("int8", "1.5")])
def test_what_is_no_value_is_named(kind, text):
    with pytest.raises(ValueError, match=f"value '{text}': a number expected for {kind}"):
        size.parse_value(kind, text)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--buffer", "2XB"), "size: buffer '2XB': a size expected, such as"),
        (("--buffer", "6143"), "size: buffer 6143: 6144 to 134215679 bytes in 3 to 65534 pages"),
        (("--buffer", "8MB"), "size: buffer 8388608: ring.bytes of a board ends at 4194304 (4 MB)"),
        (("--png", "x.txt"), "size: png 'x.txt': a name that ends in .png expected"),
        (("--page", "63"), "size: page 63: 64 to 65536 bytes expected"),
        (("--tags", "0"), "size: tags 0: 1 to 65535 expected"),
        (("--period", "0"), "size: period 0: 10 to 86400000 ms expected"),
        (("--period", "0.0105"), "size: period 0.0105 s: whole milliseconds expected"),
        (("--period", "nan"), "size: period nan s: whole milliseconds expected"),
        (("--encoding", "xml"), 'size: encoding \'xml\': "f7" or "json" expected'),
        (("--kind", "double"), "size: kind 'double': one of bool, int8,"),
        (("--kind", "uint8", "--value", "256"), "size: value 256: 0 to 255 expected for uint8"),
        (("--value", "1e39"), "size: value 1e+39: "),
        (("--max-readings", "0"), "size: max_readings 0: 1 to 1000 expected"),
        (("--max-age-ms", "-1"), "size: max_age_ms -1: 0 to 3600000 expected"),
        (("--rtt", "-1"), "size: rtt -1: 0 or more expected"),
        (("--rate", "inf"), "size: rate inf: 0 or more expected"),
        (("--price-satellite", "free"), "size: price of satellite 'free': dollars a megabyte"),
    ],
)
def test_an_error_is_one_line_with_the_value_and_the_limit(arguments, line, tmp_path):
    png = tmp_path / "chart.png"
    code, out, error = run("--png", png, *arguments)
    assert (code, out) == (1, "")
    assert error.startswith(line) and error.count("\n") == 1
    assert not png.exists()


def test_size_is_a_command_of_the_tools():
    assert command_line.COMMANDS["size"][0] == "tools.size"


# -- what is shown -------------------------------------------------------------------------------


def test_without_options_it_is_the_seeds_case_in_the_boards_pages():
    assert asked() == asked(
        *("--tags", 200, "--period", 60, "--buffer", "2MB", "--encoding", "f7", "--page", 2048)
    )


@pytest.mark.parametrize(
    ("encoding", "readings", "hours", "its_hours"),
    [("f7", 229646, 19.13, 19.2), ("json", 49066, 4.08, 3.8)],
)
def test_the_answer_for_a_machine(encoding, readings, hours, its_hours):
    found = asked("--encoding", encoding, "--page", 4096)
    assert found["readings"] == readings and found["pages"] == 512
    assert found["retention_h"] == pytest.approx(hours, abs=0.005)
    assert found["seed"]["its_case_h"] == its_hours
    assert int(found["seed"]["retention_h"] * 10) / 10 == its_hours
    change = 100 * (found["retention_h"] / found["seed"]["retention_h"] - 1)
    assert found["seed"]["difference_percent"] == pytest.approx(change)
    assert f"{abs(change):.1f} %" in found["seed"]["why"]
    assert sum(found["bytes"].values()) == found["buffer_bytes"] == 2097152
    month = found["month"]
    parts = dict(month["bytes"])
    assert parts.pop("total") == pytest.approx(sum(parts.values()))
    for price in month["prices"].values():
        assert price["dollars"] == month["bytes"]["total"] / 1e6 * price["dollars_per_mb"]
        assert price["seed_dollars"] == pytest.approx(price["seed_its_case_dollars"])
    assert found["drain_s"] is None and found["notes"] == []
    assert any("seed 004: $15 a month on cellular and $50" in line for line in found["assumptions"])


def test_prices_can_be_given():
    prices = asked("--price-cellular", "0.5", "--price-satellite", "$3/MB")["month"]["prices"]
    # 108 megabytes of the seed's case, see test_sizing.
    assert prices["cellular"]["dollars"] == pytest.approx(54)
    assert prices["satellite"]["dollars"] == pytest.approx(324)


def test_options_reach_the_calculation():
    found = asked(
        *("--tags", 3, "--period", 0.25, "--buffer", "24K", "--page", "2K", "--kind", "uint16"),
        *("--value", 7, "--max-readings", 9, "--max-age-ms", 400, "--encoding", "json"),
    )
    plan = Plan(3, 250, 24576, "json", 2048, "uint16", 7, 9, 400)
    assert found["readings"] == sizing.retention(plan).readings
    assert found["value"] == 7 and found["max_readings"] == 9 and found["max_age_ms"] == 400


def test_a_backlog_is_timed_by_round_trip_and_rate():
    assert asked("--rtt", 250, "--page", 4096)["drain_s"] == pytest.approx(128)
    found = asked("--rate", 1000, "--page", 4096)
    # 512 PUBLISHes of about 4,087 bytes, with 31 bytes of MQTT and 3 segments each.
    assert found["drain_s"] == pytest.approx(512 * 8 * (4087 + 31 + 120) / 1e6, rel=0.001)
    assert "then sent in" in run("--rtt", 250)[1]
    assert "then sent in" not in run()[1]


def test_the_page_is_the_boards_unless_another_is_asked_for():
    assert asked()["page_bytes"] == 2048


def test_what_a_board_does_not_take_is_noted():
    notes = asked("--buffer", "4KB", "--page", 1024)["notes"]
    assert notes == [
        "A board's config.json takes ring.bytes of 6144 to 4194304, not 4096.",
        "A board's config.json takes ring.page_bytes of 2048 to 65536, not 1024.",
    ]
    assert notes[0] in run("--buffer", "4KB", "--page", 1024)[1].replace("\n  ", " ")


def test_a_person_reads_both_encodings_the_seeds_figures_and_why():
    out = run("--page", 4096)[1]
    rows = {line[:38].strip(): line[38:].split() for line in out.splitlines()}
    assert rows["retention"] == ["19.13", "h", "4.083", "h"]
    assert rows["readings held"] == ["229,646", "49,066"]
    assert rows["its simple division"] == ["19.26", "h", "3.852", "h"]
    assert rows["its own case (200 tags, 60 s, 2 MB)"] == ["~19.2", "h", "~3.8", "h"]
    assert rows["bytes on the wire"][:2] == ["108.0", "MB"]
    assert rows["cellular at $0.191/MB"][0] == "$20.66"
    assert rows["satellite at $0.638/MB"][0] == "$68.87"
    assert "0.6 % shorter than by simple division" in out
    assert "6.0 % longer than by simple division" in out
    assert "200 tags every 60 s, float32, as 0xF7 in 2 MB: 19.1 h" in out


def test_the_encoding_asked_for_stands_first():
    out = run("--encoding", "json", "--page", 4096)[1]
    assert "as JSON in 2 MB: 4.08 h" in out
    head = next(line.split() for line in out.splitlines() if "0xF7" in line)
    assert head == ["JSON", "0xF7"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (45.04, "45 s"), (119.9, "120 s"), (2010, "33.5 min"), (68880, "19.1 h")]
    + [(1080000, "12.5 d"), (94672800, "3 y"), (1e13, "316,881 y")],
)
def test_durations_have_a_unit_to_be_read_in(seconds, text):
    assert shown.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(96, "96 B"), (24576, "24 KB"), (2621440, "2.5 MB"), (1 << 30, "1 GB")]
)
def test_memory_is_counted_by_1024(count, text):
    assert shown.size(count) == text


# -- the picture ---------------------------------------------------------------------------------


def pixels_of(image, colour):
    """Which pixels have about this colour."""
    return (numpy.abs(image[:, :, :3] - numpy.array(to_rgb(colour))) < 0.02).all(axis=2)


def test_the_picture_has_its_size_and_both_lines_through_the_buffer(tmp_path):
    png = tmp_path / "chart.png"
    code, out, _ = run("--png", png)
    assert code == 0 and f"drawn: {png}" in out
    assert png.read_bytes().startswith(b"\x89PNG")
    image = imread(png)
    assert image.shape[:2] == (size_chart.HEIGHT, size_chart.WIDTH) == (1000, 1600)
    heights = []
    for encoding in sizing.ENCODINGS:
        drawn = pixels_of(image, size_chart.COLOURS[encoding])
        columns = drawn.any(axis=0)
        assert columns[160:1525].mean() > 0.97
        # The line rises from left to right.
        left, right = (numpy.flatnonzero(drawn[:, column]).mean() for column in (160, 1520))
        assert left > right + 200
        heights.append(right)
    assert heights[0] < heights[1] - 50
    assert image[:, :, :3].std() > 0.05


def test_an_encoding_that_a_page_has_no_room_for_is_left_out(tmp_path):
    png = tmp_path / "chart.png"
    options = ("--page", 64, "--buffer", "64K", "--tags", 10000, "--value", -1.15735956e-32)
    code, out, _ = run(*options, "--png", png)
    assert code == 0 and "as 0xF7 in 64 KB" in out and "JSON" not in out
    image = imread(png)
    assert pixels_of(image, size_chart.COLOURS["f7"]).sum() > 2000
    assert pixels_of(image, size_chart.COLOURS["json"]).sum() == 0
    assert run(*options, "--encoding", "json")[0] == 1


def test_a_picture_of_nothing_is_refused(tmp_path):
    png = tmp_path / "chart.png"
    code, _, error = run("--tags", 65535, "--buffer", "12K", "--png", png)
    assert code == 1 and error.startswith("size: buffer 12288: no scan of 65535 tags fits")
    assert not png.exists()


def test_a_picture_that_cannot_be_written_is_named(tmp_path):
    code, out, error = run("--png", tmp_path / "none" / "chart.png")
    assert (code, out) == (1, "")
    assert error.startswith("size: ") and "chart.png: No such file or directory" in error
