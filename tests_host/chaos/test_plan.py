"""The plan of a chaos run is a matter of its seed alone."""

from tests_host.chaos.plan import HAND, KINDS, plan


def test_a_seed_gives_one_plan_and_another_seed_another():
    assert plan("7/1", 300) == plan("7/1", 300)
    assert plan("7/1", 300) != plan("8/1", 300)
    assert plan(7, 40) == plan(7, 300)[:40]


def test_every_hand_holds_every_kind_as_often_as_is_said():
    faults = plan(1, 3 * HAND)
    for begin in range(0, 3 * HAND, HAND):
        hand = [fault.kind for fault in faults[begin : begin + HAND]]
        assert {kind: hand.count(kind) for kind in KINDS} == {k: n for k, (n, _) in KINDS.items()}


def test_some_last_longer_than_the_boards_deadlines_and_most_do_not():
    lengths = [fault.ms for fault in plan(1, 1000)]
    assert all(50 <= ms <= 400 or 1100 <= ms <= 2200 for ms in lengths)
    assert 10 <= sum(ms > 1000 for ms in lengths) <= 100
