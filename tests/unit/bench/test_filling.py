"""The facts of a load before it is written."""

import dataclasses
import itertools

from bench.lib import compacting, interleaving
from bench.lib.filling import Load


def test_all_records_are_visible_where_nothing_is_aborted_or_compacted() -> None:
    assert Load(1000).visible == 1000


def test_of_every_five_transactions_the_last_is_not_visible() -> None:
    assert [interleaving.visible(records) for records in (4_000, 4_500, 5_000, 5_001, 10_000)] == [
        4_000,
        4_000,
        4_000,
        4_001,
        8_000,
    ]
    assert Load(1_000_000, transactional=True).visible == 800_000


def test_of_a_compacted_topic_one_record_a_key_is_visible_and_the_last_of_each_partition() -> None:
    load = Load(10_000, keys=3_000, partitions=4)
    drawn = list(compacting.keys(load.records, load.keys))
    assert len(drawn) == 10_000
    assert load.visible == len(set(drawn)) + 4


def test_the_same_keys_are_drawn_each_time_and_a_smaller_load_draws_the_first_of_them() -> None:
    few, many = compacting.keys(100, 3_000), compacting.keys(10_000, 3_000)
    assert list(few) == list(itertools.islice(many, 100))


def test_a_compacted_load_has_holes_however_few_records_are_asked_for() -> None:
    load = dataclasses.replace(Load(1_000_000, keys=500_000), records=20_000)
    assert load.visible - load.partitions < load.records
