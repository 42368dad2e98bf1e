"""PacketIds: which MQTT packet id is next, and whether the broker may hold it (SPEC S4, S6).

A broker may hold an id of QoS 2 that nobody here remembers: of a run before a reset, or of a
message dropped half way. It would take a new message under that id for the old one, and swallow
it. So in a session in doubt a fresh id of QoS 2 is first released, and used only when the PUBCOMP
to that has come: with PUBREL and PUBLISH behind one another, a link lost behind them would leave
open which of the two a DUP repeats.

The doubt is over once round all ids; one that was used uncleared, for QoS 1 or a subscription,
begins the round anew. It begins with the program, and ends when the broker says that it has no
session.
"""

from micropython import const

_MAX = const(65535)


class PacketIds:
    """Gives 1 to 65,535, then 1 again, never 0. `coming` is the one that goes out next."""

    def __init__(self):
        self.coming = 1
        self._doubtful = _MAX  # how many ids must yet be cleared, one behind the other
        self._cleared = 0

    def take(self, exactly_once):
        """The id `coming`, which is then used; 0 when it must first be `cleared`.

        That is so only for a message of QoS 2, `exactly_once`, in a session in doubt.
        """
        packet_id = self.coming
        if self._doubtful:
            if packet_id == self._cleared:
                self._doubtful -= 1
            elif exactly_once:
                return 0
            else:
                self._doubtful = _MAX
        self.coming = packet_id + 1 if packet_id < _MAX else 1
        self._cleared = 0
        return packet_id

    def cleared(self, packet_id):
        """The broker does not hold this id."""
        self._cleared = packet_id

    def doubt(self):
        """The broker may hold an id that is no longer remembered."""
        self._doubtful = _MAX

    def trust(self):
        """The broker has no session, and so holds none."""
        self._doubtful = 0
