"""What the core takes of a 32-bit board's RAM, as `make bench` measures it."""

from tools import bench
from tools.bench import core_ram


def test_a_page_costs_less_than_24_bytes_and_every_figure_has_its_row():
    figures = core_ram.measure()
    bars = {name: bar for name, _, bar, _ in bench.ROWS}
    assert set(figures) <= set(bars)
    assert 0 < figures["ring_bytes_per_page"] < 24
    assert bench.holds(bars["ring_bytes_per_page"], 23.9)
    assert not bench.holds(bars["ring_bytes_per_page"], 24)
    # A slot has a header of 16 bytes, a memoryview of 16, and its places in lists and rings.
    assert 32 < figures["queue_bytes_per_slot"] < 64
    assert 20 < figures["core_romfs_percent"] < 80
    assert 10000 < figures["core_mpy_ram_bytes"] <= figures["core_all_ram_bytes"]
