"""millpond on a board, dealt with over a Remote: read its status page, stop it, let it go on.

Stopping keeps all that the program holds in memory; a reset, a soft one included, loses it.
"""

from tools.remote import BoardError, Remote

RUNS = "millpond runs"
_STOPPED = "millpond is stopped"
_PAGE = r"(?:^|\n)--- status *\r?\n((?s:.*?))--- end"
_PAGE_S = 2
_RESUME_S = 15
_STATUS_KEY = "s"
_BACKSPACE = "\x7f"
_HELD = "print(counters()['held'] if 'app' in globals() else -1)"


def page_of_running(remote: Remote) -> str | None:
    """The status page of a running program, undisturbed; None when none came in time."""
    page = remote.ask(_STATUS_KEY, _PAGE, _PAGE_S)
    if page is None:
        remote.press(_BACKSPACE)  # the key may stand at a prompt now
    return page


def stop(remote: Remote) -> bool:
    """Stop whatever runs; whether it was millpond."""
    return _STOPPED in remote.interrupt()


def held(remote: Remote) -> int:
    """How many items the stopped program holds; -1 when there is none in memory."""
    return int(remote.exec(_HELD))


def resume(remote: Remote) -> None:
    """Let the stopped program go on; BoardError when it does not."""
    remote.type_line("resume()")
    if remote.wait_for(RUNS, _RESUME_S) is None:
        raise BoardError(f"{remote.port}: the program was stopped and did not go on")
