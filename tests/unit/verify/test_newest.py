from hypothesis import given
from hypothesis import strategies as st

from appliance.kafka.records.records import Record, body
from appliance.logs.model.newest import ALL_KEYS, NewestRecords, Tally

Change = tuple[int, int | None]
"""A record of a key, with its value, or None for a tombstone."""


def records(changes: list[tuple[int, Change]]) -> list[Record]:
    return [
        Record(offset, 1000 + offset, body(b"%d" % key, None if value is None else b"%d" % value))
        for offset, (key, value) in changes
    ]


def tally(source: list[Record], destination: list[Record], end: int = 1000, keys_max: int = 1000) -> Tally:
    found, low = Tally(), 0
    while low < ALL_KEYS:
        share = NewestRecords(low, ALL_KEYS, keys_max)
        share.add_source(source)
        share.add_destination(destination)
        found = found.plus(share.tally(end))
        low = share.high
    return found


HISTORY = records(list(enumerate([(1, 1), (2, 1), (1, 2), (3, 1), (2, None), (1, 3)])))


def test_records_that_compaction_took_from_one_side_do_not_matter() -> None:
    compacted = [HISTORY[3], HISTORY[5]]
    for source, destination in ((HISTORY, compacted), (compacted, HISTORY), (compacted, compacted)):
        found = tally(source, destination)
        assert (found.equal.count, found.changed.count, found.absent.count, found.unknown.count) == (2, 0, 0, 0)
        assert found.equal.last == 5
        assert found.digest == tally(HISTORY, HISTORY).digest


def test_a_destination_that_is_behind_has_nothing_equal_after_what_is_amiss() -> None:
    found = tally(HISTORY, HISTORY[:3])
    assert (found.equal.count, found.changed.count, found.changed.first) == (0, 2, 4)
    assert (found.absent.count, found.absent.first, found.absent.last) == (1, 3, 3)


def test_a_lost_record_stands_before_what_is_equal() -> None:
    found = tally(HISTORY, HISTORY[:3] + HISTORY[4:])
    assert found.absent.count == 1
    assert found.absent.first == 3 < found.equal.last == 5


def test_a_key_that_only_the_destination_has_is_told() -> None:
    found = tally(HISTORY, [*HISTORY, *records([(9, (7, 1))])])
    assert (found.unknown.count, found.unknown.first) == (1, 9)


def test_a_lost_tombstone_is_a_change() -> None:
    found = tally(HISTORY, HISTORY[:4] + HISTORY[5:])
    assert (found.changed.count, found.changed.first) == (1, 4)


def test_records_newer_than_the_end_are_not_yet_due() -> None:
    found = tally(HISTORY, HISTORY[:4], end=4)
    assert (found.changed.count, found.absent.count, found.unknown.count) == (0, 0, 0)


def test_records_without_a_key_are_left_out() -> None:
    assert tally([Record(0, 1, body(None, b"v"))], []) == Tally()


changes = st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(0, 3)), max_size=60)


@given(changes, st.sets(st.integers(0, 59)), st.sets(st.integers(0, 59)), st.integers(1, 40))
def test_with_any_compaction_on_either_side_and_few_keys_at_once_the_sides_are_equal(
    history: list[Change], ours: set[int], theirs: set[int], keys_max: int
) -> None:
    newest = {key: offset for offset, (key, _) in enumerate(history)}
    kept = set(newest.values())
    source, destination = (
        records([(offset, change) for offset, change in enumerate(history) if offset in kept or offset not in gone])
        for gone in (ours, theirs)
    )
    found = tally(source, destination, keys_max=keys_max)
    assert (found.changed.count, found.absent.count, found.unknown.count) == (0, 0, 0)
    assert found.equal.count == sum(history[offset][1] is not None for offset in kept)
    assert found.digest == tally(source, destination).digest
