"""Log: one event, one line, whatever stands in it."""

from firmware import log, settings
from millpond.clock import Clock


def lines(write):
    """What is printed while `write(log)` runs."""
    printed = []
    log.print = printed.append
    try:
        write(log.Log("info", Clock(lambda: 0)))
    finally:
        del log.print
    return printed


def test_levels_and_the_form_of_a_line():
    def write(out):
        for say in (out.error, out.warning, out.info, out.debug):
            say("21 \u00b0C \u4e2d")

    text = "21 \u00b0C \u4e2d"
    levels = ("ERROR", "WARNING", "INFO")
    assert lines(write) == ["[     0] {} {}".format(level, text) for level in levels]


def test_what_comes_from_outside_cannot_speak_to_the_terminal_nor_forge_a_line():
    text = "refused: \x1b[2J\x00\n[     1] INFO link up\r\x7f\x9b2J\u2028"
    (line,) = lines(lambda out: out.error(text))
    assert line == "[     0] ERROR refused: ?[2J??[     1] INFO link up????2J\u2028"
    assert settings.printable("") == "" and settings.printable("\u00a0\u00c2") == "\u00a0\u00c2"
