"""The model of the maps' growth, and the bound that issue and documents name."""

import random

import pytest

from bench.cases import maps
from bench.cases.maps import modelled
from bench.lib.row import LIMIT
from bench.lib.trickle_maps import MapBytes, plain, transaction, trickle


@pytest.mark.parametrize("writes", [3, 60, 240])
def test_the_maps_of_a_trickle_over_ten_thousand_partitions_grow_by_less_than_is_allowed(
    writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "_SAMPLE", 5)
    bounded = [row for row in modelled(10_000, writes) if row.peer_name == LIMIT]
    assert len(bounded) == len(maps.KINDS)
    for row in bounded:
        assert row.peer >= 1_000_000
        assert 0 < row.ratio < 1, row


def test_of_what_is_written_again_the_newest_is_kept() -> None:
    found = MapBytes()
    for size in (50, 60, 40):
        found.tail("partition", size)
    assert (found.kept, found.written) == (40, 150)


def test_segments_are_counted_with_the_batch_and_the_marker_that_they_take() -> None:
    found = trickle(1, 300, transaction, 0)
    tails = trickle(1, 30, transaction, 0)
    assert found.kept > 300 > tails.kept
    assert found.written < 0.1 * found.copied


def test_equal_records_take_no_more_however_many_they_are() -> None:
    assert trickle(1, 1_000, plain, 0).kept - trickle(1, 10, plain, 0).kept < 4


def test_every_fifth_transaction_is_aborted() -> None:
    chance = random.Random(0)
    assert 150 < sum(transaction(chance).aborted for _ in range(1_000)) < 250
