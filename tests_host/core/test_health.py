"""Health: each of the four judgements of Q10 with its advice, and the gauges."""

from millpond.health import (
    ADVICE,
    DROPS,
    LATENCY,
    THROUGHPUT,
    UTILISATION,
    HealthJudge,
    gauges,
    judge_drops,
    judge_fill,
)
from millpond.message import HIGH, LOW
from millpond.message_queue import MessageQueue
from tests_host.core.queue_kit import WRAP

MINUTE = 60000


class Store:
    """Totals as a queue would count them, moved on a window at a time."""

    def __init__(self, start=0):
        self.now = start
        self.totals = (0, 0, 0, 0)
        self.judge = HealthJudge("intake")
        self.judge.weigh(start, 0, 100, self.totals)

    def window(self, offered, taken, wait=10, used=0, dropped=0, oldest=0, ms=MINUTE):
        """One window; the codes of the verdicts on it. `wait` is that of each message taken."""
        self.now = (self.now + ms) % WRAP
        steps = (offered, dropped, taken, taken * wait)
        self.totals = tuple(total + step for total, step in zip(self.totals, steps))
        self.verdicts = self.judge.weigh(self.now, used, 100, self.totals, oldest)
        return [code for code, _ in self.verdicts]


def texts(verdicts):
    return dict(verdicts)


# -- utilisation and drops -------------------------------------------------------------------------


def test_Q10_utilisation_over_80_percent_is_told_with_what_to_do():
    assert judge_fill("ring", 0, 10) == []
    assert judge_fill("ring", 8, 10) == []
    assert judge_fill("ring", 80, 100) == []
    [(code, text)] = judge_fill("ring", 81, 100)
    assert code == UTILISATION and text == "ring is 81 % full: " + ADVICE[UTILISATION]
    assert [code for code, _ in judge_fill("q", 103, 128)] == [UTILISATION]
    assert judge_fill("q", 102, 128) == []


def test_Q10_drop_rate_over_1_percent_is_told_with_what_to_do():
    assert judge_drops("intake", 0, 0) == []
    assert judge_drops("intake", 1, 100) == []
    [(code, text)] = judge_drops("intake", 2, 199)
    assert code == DROPS
    assert text == "intake dropped 2 of 199 messages: " + ADVICE[DROPS]
    assert [code for code, _ in judge_drops("intake", 3, 0)] == [DROPS]


def test_Q10_queue_is_judged_as_it_stands():
    queue = MessageQueue(10, 8)
    judge = HealthJudge("intake")
    for _ in range(8):
        queue.enqueue("t", b"x")
    assert judge.judge(0, queue) == []
    for _ in range(4):
        queue.enqueue("t", b"x")
    found = texts(judge.judge(MINUTE, queue))
    assert sorted(found) == [DROPS, THROUGHPUT, UTILISATION]
    assert found[UTILISATION].startswith("intake is 100 % full: ")
    assert found[DROPS].startswith("intake dropped 2 of 4 messages: ")


def test_Q10_first_judgement_covers_the_drops_so_far():
    queue = MessageQueue(1, 8)
    queue.enqueue("t", b"x", priority=LOW)
    queue.enqueue("t", b"x", priority=HIGH)
    queue.pop(0)
    assert [code for code, _ in HealthJudge("q").judge(0, queue)] == [DROPS]


def test_Q10_drops_of_an_earlier_window_are_over():
    store = Store()
    assert store.window(offered=100, taken=98, dropped=2) == [DROPS]
    assert store.window(offered=100, taken=100) == []


def test_Q10_healthy_queue_has_no_verdicts():
    queue = MessageQueue(16, 8)
    judge = HealthJudge("intake")
    now = WRAP - 3 * MINUTE
    for _ in range(10):
        for _ in range(50):
            queue.enqueue("t", b"x", now=now)
            queue.pop((now + 20) % WRAP)
        assert judge.judge(now, queue) == []
        now = (now + MINUTE) % WRAP


# -- throughput ------------------------------------------------------------------------------------


def test_Q10_falling_throughput_is_told_with_what_to_do():
    store = Store()
    for _ in range(3):
        assert store.window(offered=600, taken=600) == []
    assert store.window(offered=600, taken=300, used=30) == [THROUGHPUT]
    assert store.verdicts[0][1] == ("intake gives out 5.0/s, 10.0/s before: " + ADVICE[THROUGHPUT])


def test_Q10_throughput_a_little_lower_is_not_falling():
    store = Store()
    store.window(offered=600, taken=600)
    assert store.window(offered=600, taken=450, used=75) == []
    store = Store()
    store.window(offered=600, taken=600)
    assert store.window(offered=600, taken=449, used=75) == [THROUGHPUT]


def test_Q10_less_coming_in_is_not_falling_throughput():
    store = Store()
    for offered in (600, 600, 60, 6, 0, 1):
        assert store.window(offered=offered, taken=offered) == []
    store = Store()
    store.window(offered=600, taken=600)
    assert store.window(offered=60, taken=56, used=4) == []
    assert store.window(offered=100, taken=94, used=10) == []


def test_Q10_usual_throughput_moves_a_quarter_of_the_way_to_each_window():
    store = Store()
    store.window(offered=600, taken=600)
    assert store.window(offered=300, taken=300) == []
    assert store.window(offered=600, taken=300, used=50) == [THROUGHPUT]
    assert "5.0/s, 8.7/s before" in texts(store.verdicts)[THROUGHPUT]


def test_Q10_throughput_that_goes_on_falling_is_told_until_it_recovers():
    store = Store()
    for _ in range(3):
        store.window(offered=600, taken=600)
    for taken in list(range(400, 380, -1)) + [300, 200, 100, 50, 20, 10, 5, 2, 1]:
        assert store.window(offered=600, taken=taken, used=50) == [THROUGHPUT]
    assert store.window(offered=600, taken=640) == []


def test_Q10_lower_throughput_that_stays_becomes_the_usual():
    store = Store()
    for _ in range(3):
        store.window(offered=600, taken=600)
    told = [store.window(offered=600, taken=300, used=50) == [THROUGHPUT] for _ in range(12)]
    assert told[0] and told[1] and not told[-1]


def test_Q10_queue_out_of_which_nothing_comes_is_told_for_as_long_as_it_lasts():
    store = Store()
    store.window(offered=600, taken=600)
    assert store.window(offered=4, taken=0, used=4) == []
    for _ in range(20):
        assert store.window(offered=0, taken=0, used=4) == [THROUGHPUT]
    assert "intake gives out 0.0/s, 7.5/s before" in texts(store.verdicts)[THROUGHPUT]
    assert store.window(offered=0, taken=4) == []


def test_Q10_empty_queue_that_rests_is_healthy():
    store = Store()
    store.window(offered=600, taken=600)
    for _ in range(10):
        assert store.window(offered=0, taken=0) == []


# -- latency ---------------------------------------------------------------------------------------


def test_Q10_growing_latency_is_told_with_what_to_do():
    store = Store()
    for _ in range(3):
        assert store.window(offered=100, taken=100, wait=600) == []
    assert store.window(offered=100, taken=100, wait=1201) == [LATENCY]
    assert store.verdicts[0][1] == (
        "intake keeps messages for 1.2 s, 0.6 s before: " + ADVICE[LATENCY]
    )


def test_Q10_latency_up_to_twice_the_usual_or_under_a_second_is_not_told():
    store = Store()
    store.window(offered=100, taken=100, wait=600)
    assert store.window(offered=100, taken=100, wait=1200) == []
    store = Store()
    store.window(offered=100, taken=100, wait=1)
    assert store.window(offered=100, taken=100, wait=999) == []
    store = Store()
    store.window(offered=100, taken=100, wait=1)
    assert store.window(offered=100, taken=100, wait=1000) == [LATENCY]


def test_Q10_latency_that_goes_on_growing_is_told_until_it_ends():
    store = Store()
    store.window(offered=100, taken=100, wait=50)
    for step in range(1, 30):
        assert store.window(offered=100, taken=100, wait=1000 * step) == [LATENCY]
    assert store.window(offered=100, taken=100, wait=60) == []


def test_Q10_longer_latency_that_stays_becomes_the_usual():
    store = Store()
    store.window(offered=100, taken=100, wait=50)
    told = [store.window(offered=100, taken=100, wait=4000) == [LATENCY] for _ in range(12)]
    assert told[0] and told[1] and not told[-1]


def test_Q10_age_of_the_oldest_stands_in_when_nothing_is_taken():
    store = Store()
    store.window(offered=100, taken=100, wait=50)
    assert store.window(offered=4, taken=0, used=4, oldest=30000) == [LATENCY]
    assert store.window(offered=4, taken=0, used=8, oldest=90000) == [THROUGHPUT, LATENCY]
    assert "keeps messages for 90.0 s, 0.0 s before" in texts(store.verdicts)[LATENCY]


# -- windows ---------------------------------------------------------------------------------------


def test_Q10_window_too_short_to_judge_leaves_the_answers_standing():
    store = Store()
    store.window(offered=600, taken=600)
    assert store.window(offered=600, taken=100, used=50, dropped=9) == [DROPS, THROUGHPUT]
    standing = store.verdicts
    assert store.window(offered=0, taken=0, used=50, ms=4999) == [DROPS, THROUGHPUT]
    assert store.verdicts == standing
    assert store.window(offered=9, taken=0, used=90, ms=0) == [UTILISATION, DROPS, THROUGHPUT]
    assert store.window(offered=0, taken=540, used=0, ms=MINUTE) == []


def test_Q10_fill_is_judged_at_once_however_short_the_window():
    store = Store()
    assert store.window(offered=90, taken=0, used=90, ms=1) == [UTILISATION]
    assert store.window(offered=0, taken=90, used=0, ms=1) == []


def test_Q10_windows_work_across_the_wrap_of_the_ticks():
    """Report: mp#9516, mp#9608, coreMQTT#288."""
    store = Store(start=WRAP - MINUTE // 2)
    store.window(offered=600, taken=600)
    assert store.now == MINUTE // 2
    assert store.window(offered=600, taken=300, used=99) == [UTILISATION, THROUGHPUT]
    assert "5.0/s, 10.0/s before" in texts(store.verdicts)[THROUGHPUT]


def test_Q10_anything_that_counts_can_be_judged():
    judge = HealthJudge("ring")
    assert judge.weigh(0, 50, 100, (10, 0, 10, 0)) == []
    [(code, text)] = judge.weigh(MINUTE, 93, 100, (20, 0, 20, 0))
    assert code == UTILISATION and text.startswith("ring is 93 % full")


def test_Q10_same_figures_get_the_same_verdicts():
    def told():
        store = Store()
        out = []
        for offered, taken, wait in ((50, 50, 9), (50, 20, 3000), (50, 9, 9000), (50, 60, 5)):
            store.window(offered=offered, taken=taken, wait=wait, used=40)
            out.append(store.verdicts)
        return out

    assert told() == told()
    assert [len(verdicts) for verdicts in told()] == [0, 2, 2, 0]


def test_Q10_every_judgement_has_its_own_advice():
    assert sorted(ADVICE) == sorted((UTILISATION, DROPS, THROUGHPUT, LATENCY))
    assert len(set(ADVICE.values())) == 4 and all(ADVICE.values())


# -- gauges ----------------------------------------------------------------------------------------


def test_Q8_gauges_tell_every_figure_of_the_queue():
    queue = MessageQueue(2, 8)
    queue.enqueue("t", b"x", now=100)
    queue.pop(150)
    queue.enqueue("t", b"x", priority=LOW, now=200)
    queue.enqueue("t", b"x", priority=LOW, now=210)
    queue.enqueue("t", b"x", priority=HIGH, now=220, ttl_ms=5)
    queue.enqueue("t", b"x", priority=LOW, now=221)
    queue.expire(230)
    queue.stats.was_busy()
    assert gauges(queue, 300) == {
        "size": 1,
        "capacity": 2,
        "fill_percent": 50,
        "high_water": 2,
        "enqueued": 4,
        "dequeued": 1,
        "dropped": 4,
        "refused": 2,
        "busy": 1,
        "displaced": 1,
        "expired": 1,
        "cleared": 0,
        "drop_rate": 4 / 6,
        "throughput": 0.0,
        "oldest_ms": 90,
        "last_wait_ms": 50,
        "mean_wait_ms": 50,
        "max_wait_ms": 50,
    }
