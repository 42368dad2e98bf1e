"""The simulated plant: its data behave like a plant's, and every alert is true."""

import gc

from firmware.sensors import plant
from firmware.sensors.plant import Plant
from tests_host.app.seen import Nothing, read, values_of
from tests_host.kit import MICROPYTHON

TEMPERATURES = range(1, 9)
PRESSURES = range(9, 13)
CURRENTS = range(13, 17)
COUNTERS = (17, 18)
RUNS = (19, 20)
SCAN = 21
STARTS = (20, 25, 30, 35, 40, 45, 50, 55)
FINGERPRINT_OF_SEED_1 = 7453
FINGERPRINT_OF_LARGEST_SEED = 25546

NOT_ON_32_BIT = {
    "test_reading_the_plant_leaves_no_memory_behind": "no collection within a test there",
}


def test_plant_tags_are_those_of_the_plant():
    by_kind = {}
    for tag_id, _, kind, unit, scale in plant.TAGS:
        by_kind.setdefault((kind, unit, scale), []).append(tag_id)
    assert by_kind == {
        ("float32", "degC", 0.1): list(TEMPERATURES),
        ("float32", "bar", 0.01): list(PRESSURES),
        ("float32", "A", 0.1): list(CURRENTS),
        ("uint32", "1", 1): list(COUNTERS) + [SCAN],
        ("bool", "", 1): list(RUNS),
    }
    names = [tag[1] for tag in plant.TAGS]
    assert names[0] == "temp0" and names[7] == "temp7" and names[11] == "press3"
    assert names[15] == "amp3" and names[17:] == ["count1", "run0", "run1", "scan"]


def test_plant_period_is_the_one_given():
    assert Plant(250, 1, 300).period_ms == 250


# The plant's data


def fingerprint(sensor, reads):
    """One number for all values of many reads, exact on any width of float."""
    scales = {tag[0]: int(1 / tag[4] + 0.5) for tag in sensor.tags}
    mixed = 0
    for _ in range(reads):
        seen = read(sensor)
        for tag_id in seen.order:
            whole = int(seen.values[tag_id] * scales[tag_id] + 0.5)
            mixed = (mixed * 31 + whole % 1000) % 32749
        mixed = (mixed + len(seen.alerts)) % 32749
    return mixed


def test_a_seed_gives_the_same_plant_on_every_interpreter():
    assert fingerprint(Plant(1000, 1, 60), 300) == FINGERPRINT_OF_SEED_1
    assert fingerprint(Plant(1000, 4294967295, 60), 300) == FINGERPRINT_OF_LARGEST_SEED


def test_seeds_give_different_plants():
    found = [fingerprint(Plant(1000, seed, 0), 20) for seed in (0, 1, 2, 32362, 32363, 65536)]
    assert len(set(found)) == len(found), found


def test_values_stay_in_their_ranges_and_move():
    sensor = Plant(1000, 3, 100)
    lowest, highest = {}, {}
    for _ in range(12000):
        values = read(sensor).values
        for tag_id in values:
            lowest[tag_id] = min(values[tag_id], lowest.get(tag_id, values[tag_id]))
            highest[tag_id] = max(values[tag_id], highest.get(tag_id, values[tag_id]))
    for tag_id, start in zip(TEMPERATURES, STARTS):
        assert start - 2.6 < lowest[tag_id] < highest[tag_id] < start + 2.6, tag_id
        assert highest[tag_id] - lowest[tag_id] > 0.5, tag_id
    for tag_id, start in zip(PRESSURES, (1, 3, 5, 7)):
        assert start - 0.13 < lowest[tag_id] < highest[tag_id] < start + 0.13, tag_id
        assert highest[tag_id] - lowest[tag_id] > 0.02, tag_id


def test_values_start_near_the_middle_and_walk_in_small_steps():
    sensor = Plant(1000, 5, 0)
    before = read(sensor).values
    for tag_id, start in zip(TEMPERATURES, STARTS):
        assert abs(before[tag_id] - start) < 0.11
    for _ in range(500):
        values = read(sensor).values
        for tag_id in TEMPERATURES:
            assert abs(values[tag_id] - before[tag_id]) < 0.11
        for tag_id in PRESSURES:
            assert abs(values[tag_id] - before[tag_id]) < 0.011
        before = values


def test_values_are_rounded_to_their_resolution():
    sensor = Plant(1000, 2, 100)
    for _ in range(300):
        values = read(sensor).values
        for tag_id, _, kind, _, scale in plant.TAGS:
            if kind == "float32":
                steps = values[tag_id] / scale
                assert abs(steps - int(steps + 0.5)) < 0.001, (tag_id, values[tag_id])


def test_currents_and_counters_follow_the_run_flags():
    sensor = Plant(1000, 1, 300)
    parts = {17: 0, 18: 0}
    seen_running = {19: set(), 20: set()}
    noise = {13: set(), 14: set(), 15: set(), 16: set()}
    for _ in range(3000):
        values = read(sensor).values
        for counter, run in zip(COUNTERS, RUNS):
            grown = values[counter] - parts[counter]
            assert grown in ((0, 1) if values[run] else (0,))
            parts[counter] = values[counter]
            assert type(values[run]) is bool
            seen_running[run].add(values[run])
        for current, run, mean in ((13, 19, 12), (14, 19, 30), (15, 20, 7), (16, 20, 55)):
            if values[run]:
                assert 0.9 * mean < values[current] < 1.1 * mean
                noise[current].add(values[current])
            else:
                assert values[current] == 0
    assert min(parts.values()) > 50, parts
    assert all([len(found) == 2 for found in seen_running.values()])
    assert all([len(found) >= 5 for found in noise.values()])


def test_scan_grows_by_one_each_read():
    assert values_of(Plant(1000, 9, 300), SCAN, 200) == list(range(1, 201))


def test_scan_stays_a_small_int_at_its_wrap():
    sensor = Plant(1000, 9, 300)
    sensor._scan = 0x3FFFFFFE
    assert values_of(sensor, SCAN, 3) == [0x3FFFFFFF, 0, 1]


def test_random_numbers_are_in_range_and_even():
    below = plant._Random(12345).below
    counts = [0] * 7
    for _ in range(7000):
        counts[below(7)] += 1
    assert min(counts) > 850 and max(counts) < 1150, counts
    largest = max([below(32362) for _ in range(2000)])
    assert 32000 < largest < 32362


def test_random_states_never_leave_small_ints():
    random = plant._Random(4294967295)
    for _ in range(1000):
        random.below(32362)
        assert 0 < random._a < 32363 and 0 < random._b < 31727 and 0 < random._c < 31657
    assert 32362 * 157 < 2**30 and 32361 * 32362 < 2**30


# Alerts


def assert_true_alert(text, values):
    """`text` says "temp3 37.8 degC over 37.3", and the readings of the same moment say so too."""
    tag, value, unit, over, limit = text.split(" ")
    assert (unit, over) == ("degC", "over")
    i = int(tag[len("temp") :])
    assert float(value) == values[1 + i] and values[1 + i] > float(limit)
    assert float(limit) == STARTS[i] + 2.3


def test_an_alert_comes_at_the_latest_after_alert_every_s():
    for period_ms, every_s, reads in ((1000, 20, 20), (100, 2, 20), (3000, 2, 1), (1000, 1, 1)):
        sensor = Plant(period_ms, 4, every_s)
        quiet = 0
        for _ in range(200):
            seen = read(sensor)
            quiet = 0 if seen.alerts else quiet + 1
            assert quiet < reads, (period_ms, every_s)


def test_every_alert_is_true():
    sensor = Plant(1000, 1, 30)
    found = 0
    for _ in range(3000):
        seen = read(sensor)
        for name, text in seen.alerts:
            assert name == "overtemp"
            assert_true_alert(text, seen.values)
            found += 1
    assert found >= 100


def test_a_hot_temperature_raises_one_alert_and_is_cooled():
    sensor = Plant(1000, 1, 100)
    hot = {}
    for _ in range(2000):
        seen = read(sensor)
        for _, text in seen.alerts:
            tag_id = 1 + int(text[len("temp")])
            assert tag_id not in hot, text
            hot[tag_id] = 0
        for tag_id in list(hot):
            hot[tag_id] += 1
            assert hot[tag_id] < 30, tag_id
            if seen.values[tag_id] < STARTS[tag_id - 1] + 1.85:
                del hot[tag_id]


def test_without_alert_every_s_only_the_walk_raises_alerts():
    sensor = Plant(1000, 7, 0)
    first = None
    for i in range(9000):
        seen = read(sensor)
        if seen.alerts and first is None:
            first = i
            assert_true_alert(seen.alerts[0][1], seen.values)
    assert first is not None and first > 1000


def test_an_alert_fits_in_a_slot_of_the_intake():
    sensor = Plant(1000, 1, 1)
    for _ in range(20):
        for name, text in read(sensor).alerts:
            whole = '{{"ts": 4294967295, "name": "{}", "text": "{}"}}'.format(name, text)
            assert len(whole) <= 96, whole


def test_reading_the_plant_leaves_no_memory_behind():
    if not MICROPYTHON:
        return
    sensor, out = Plant(1000, 1, 10), Nothing()
    for _ in range(100):
        sensor.read(out)
    gc.collect()
    before = gc.mem_alloc()
    for _ in range(2000):
        sensor.read(out)
    gc.collect()
    assert gc.mem_alloc() <= before


def test_another_pace_of_alerts_holds_at_once():
    plant = Plant(1000, 1, 0)
    for _ in range(50):
        read(plant)
    plant.pace(1000, 10)
    assert plant.period_ms == 1000 and read(plant).alerts
    assert any([read(plant).alerts for _ in range(10)])
