"""Health: the gauges of a queue, what is wrong with them, and what to do about it (Q10, seed 000).

Four things are judged: how full it is, how much of what it was offered it dropped, whether what is
taken out of it falls off, and whether messages wait longer and longer. The last two are trends, so
a HealthJudge remembers. It compares the time since it was last asked (a window) with what was
usual in the windows before:

- the usual moves a quarter of the way to each new window, but not while things get worse, so that
  a decline is reported until it ends and never becomes the usual;
- a window shorter than 5 s is not judged: the answers of the last one stand;
- the first window begins with the queue itself and has nothing to be compared with.

A verdict is a pair (code, text), the text for a person; no verdicts means healthy.
"""

from micropython import const

from millpond.clock import diff

UTILISATION = "utilisation"
DROPS = "drops"
THROUGHPUT = "throughput"
LATENCY = "latency"

_FULL_PERCENT = const(80)
_DROP_PERCENT = const(1)
_WINDOW_MS = const(5000)
_FALLEN_PERCENT = const(75)  # of the usual throughput
_LEFT_PERCENT = const(10)  # of what was offered was not taken
_LEFT = const(5)  # messages, at least, were not taken
_GROWN = const(2)  # times the usual time in queue
_LONG_MS = const(1000)  # a time in queue below this is never a complaint

ADVICE = {
    UTILISATION: "make it larger if memory allows, or hand in fewer messages",
    DROPS: "take messages out faster or read sensors less often; low priorities are dropped first",
    THROUGHPUT: "look at what takes messages out of it: the task, the link, the broker",
    LATENCY: "more comes in than goes out: larger batches, a faster link, or fewer readings",
}


def gauges(queue, now):
    """Every gauge and counter of a MessageQueue as a dict of numbers (Q8)."""
    stats = queue.stats
    return {
        "size": len(queue),
        "capacity": queue.capacity,
        "fill_percent": queue.fill_percent(),
        "high_water": stats.high_water,
        "enqueued": stats.enqueued,
        "dequeued": stats.dequeued,
        "dropped": stats.dropped,
        "refused": stats.refused,
        "busy": stats.busy,
        "displaced": stats.displaced,
        "expired": stats.expired,
        "cleared": stats.cleared,
        "drop_rate": stats.drop_rate,
        "throughput": stats.throughput,
        "oldest_ms": queue.oldest_ms(now),
        "last_wait_ms": stats.last_wait_ms,
        "mean_wait_ms": stats.mean_wait_ms,
        "max_wait_ms": stats.max_wait_ms,
    }


def judge_fill(name, used, size):
    """Verdicts on `used` of `size` (slots, pages, percent of 100) being taken: over 80 %?"""
    if 100 * used <= _FULL_PERCENT * size:
        return []
    return [_verdict(UTILISATION, "{} is {} % full".format(name, 100 * used // size))]


def judge_drops(name, dropped, offered):
    """Verdicts on `dropped` of `offered` messages being lost: over 1 %?"""
    if 100 * dropped <= _DROP_PERCENT * offered:
        return []
    return [_verdict(DROPS, "{} dropped {} of {} messages".format(name, dropped, offered))]


def _verdict(code, finding):
    return code, "{}: {}".format(finding, ADVICE[code])


class HealthJudge:
    """Judges one queue, or anything that counts like one, each time it is asked (Q10)."""

    def __init__(self, name):
        self.name = name
        self._asked = None  # when the last window ended
        self._totals = (0, 0, 0, 0)
        self._used = 0
        self._trends = []
        self._rate = Usual()
        self._wait = Usual()

    def judge(self, now, queue):
        """Verdicts on a MessageQueue, at best every minute or so."""
        stats = queue.stats
        totals = (stats.offered, stats.dropped, stats.dequeued, stats.waited_ms)
        return self.weigh(now, len(queue), queue.capacity, totals, queue.oldest_ms(now))

    def weigh(self, now, used, size, totals, oldest_ms=0):
        """Verdicts on any store: `used` of `size` taken, and four totals since it was made.

        `totals` is (messages offered, dropped, taken out, milliseconds these waited, added up).
        `oldest_ms` is how long the oldest message has waited; it stands in for the time in queue
        when none was taken out.
        """
        fill = judge_fill(self.name, used, size)
        if self._asked is None:
            self._trends = judge_drops(self.name, totals[1], totals[0])
        else:
            ms = diff(now, self._asked)
            if 0 <= ms < _WINDOW_MS:
                return fill + self._trends
            window = [total - before for total, before in zip(totals, self._totals)]
            self._trends = self._judge_window(max(1, ms), used, window, oldest_ms)
        self._asked = now
        self._totals = totals
        self._used = used
        return fill + self._trends

    def _judge_window(self, ms, used, window, oldest_ms):
        offered, dropped, taken, waited = window
        found = judge_drops(self.name, dropped, offered)
        found += self._judge_throughput(ms, used, offered, taken)
        if taken:
            found += self._judge_latency(waited // taken)
        elif used:
            found += self._judge_latency(oldest_ms)
        return found

    def _judge_throughput(self, ms, used, offered, taken):
        """Falling: nothing is taken though messages wait, or less than usual and more is left.

        Less being taken because less comes in is not falling.
        """
        rate = 1000000 * taken // ms  # messages in 1000 s
        usual = self._rate.value
        stuck = not taken and used and self._used
        left = offered - taken
        behind = left >= _LEFT and 100 * left > _LEFT_PERCENT * offered
        fallen = usual is not None and 100 * rate < _FALLEN_PERCENT * usual
        bad = stuck or behind and fallen
        self._rate.learn(rate, hold=stuck or bad and rate < self._rate.last)
        if not bad:
            return []
        finding = "{} gives out {}/s, {}/s before".format(
            self.name, _thousandths(rate), _thousandths(usual or 0)
        )
        return [_verdict(THROUGHPUT, finding)]

    def _judge_latency(self, wait):
        usual = self._wait.value
        bad = usual is not None and wait >= _LONG_MS and wait > _GROWN * usual
        self._wait.learn(wait, hold=bad and wait > self._wait.last)
        if not bad:
            return []
        finding = "{} keeps messages for {} s, {} s before".format(
            self.name, _thousandths(wait), _thousandths(usual)
        )
        return [_verdict(LATENCY, finding)]


class Usual:
    """What a figure usually is, and what it was last; `value` is None before the first."""

    def __init__(self):
        self.value = None
        self.last = 0

    def learn(self, figure, hold):
        """Take one more figure in; `hold` keeps the usual as it is."""
        self.last = figure
        if self.value is None:
            self.value = figure
        elif not hold:
            self.value = (3 * self.value + figure) // 4


def _thousandths(figure):
    """A number of thousandths as text with one decimal, cut off."""
    return "{}.{}".format(figure // 1000, figure % 1000 // 100)
