"""Rounds of ranges through the SQL: no record is lost or doubled, and one that fails is found, however jobs end."""

import random

import pytest

from appliance.engine.model.ranges import Failure, Outcome, Range
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.outgoing import Outgoing
from appliance.sql.flight.rounds import Pending, Rounds


def batch(first: int, runs: tuple[tuple[int, int], ...]) -> Outgoing:
    """A batch of records at these offsets."""
    count, (begin, length) = sum(length for _, length in runs), runs[-1]
    kept = runs if len(runs) > 1 else ()
    return Outgoing(b"x" * count, count, first, begin + length, 0, raw=True, runs=kept)


def offsets(each: Range) -> list[int]:
    """The offsets of a range's records."""
    runs = [run for one in each.batches for run in one.runs or ((one.first_offset, one.records),)]
    every = [offset for first, length in runs for offset in range(first, first + length)]
    return [offset for offset in every if each.start <= offset < each.end]


def passed(each: Range, kept: list[int]) -> list[Outgoing]:
    """What a SQL makes of a range that keeps some records."""
    own = [offset for offset in offsets(each) if offset in kept]
    return [Outgoing(b"", 1, offset, offset + 1, 0, raw=False) for offset in own]


def copied(outcome: Outcome) -> list[int]:
    return [one.first_offset for one in outcome.batches]


ORDERS = Range(Partition("orders", 0), 10, 30, (batch(8, ((8, 8),)), batch(16, ((16, 4), (22, 10)))), 1000)


def test_a_range_counts_and_halves_its_records_and_not_its_offsets() -> None:
    assert offsets(ORDERS) == [*range(10, 20), *range(22, 30)]
    assert ORDERS.records == 18
    halves = ORDERS.halves()
    assert [offset for half in halves for offset in offsets(half)] == offsets(ORDERS)
    assert [half.records for half in halves] == [9, 9]
    alone = ORDERS.divide(11)[0]
    assert alone.halves() == (alone,)


@pytest.mark.parametrize("stops", [True, False], ids=["stop", "dead letters"])
@pytest.mark.parametrize("seed", range(200))
def test_whatever_jobs_do_each_record_is_copied_filtered_or_failed_once(seed: int, stops: bool) -> None:
    chance = random.Random(seed)
    every = []
    for number in range(chance.randint(1, 4)):
        first, length = chance.randint(0, 5), chance.randint(1, 40)
        held = ((first, length), (first + length + 3, chance.randint(1, 10)))
        every.append(Range(Partition("orders", number), first, held[-1][0] + held[-1][1], (batch(first, held),), 1000))
    kept = {each.partition: [at for at in offsets(each) if chance.random() < 0.7] for each in every}
    bad = {each.partition: [at for at in offsets(each) if chance.random() < 0.05] for each in every}
    rounds, attempt = Rounds(), 0
    pending = [Pending(each, stops) for each in every]
    rounds.add(pending)
    while rounds.ready:
        attempt += 1
        taken = rounds.take(attempt)
        for number, each in enumerate(taken):
            if chance.random() < 0.1:
                break  # the job dies
            if failing := [at for at in offsets(each) if at in bad[each.partition]]:
                if len(offsets(each)) == 1:
                    rounds.end(f"fails at {failing[0]}", of_record=True)
                break
            if chance.random() < 0.1:
                rounds.confirm(attempt - 1, number, ())  # late news of an earlier attempt
            rounds.confirm(attempt, number, passed(each, kept[each.partition]))
        if chance.random() < 0.5:
            rounds.end("killed", of_record=chance.random() < 0.1 and len(taken) > 1)
    for one in pending:
        assert one.open == 0
        partition, outcome = one.range.partition, one.outcome()
        fails = bad[partition]
        end = fails[0] if fails and stops else one.range.end
        wanted = [at for at in offsets(one.range) if at < end]
        expected = [at for at in wanted if at in kept[partition] and at not in fails]
        assert copied(outcome) == expected
        assert outcome.next_offset == end
        told = [] if stops else [Failure(at, f"fails at {at}") for at in fails]
        assert list(outcome.failures) == told
        assert outcome.stop == (Failure(fails[0], f"fails at {fails[0]}") if fails and stops else None)
        assert outcome.filtered == len(wanted) - len(expected) - len(told)


def test_a_single_record_is_not_blamed_for_a_job_that_was_killed() -> None:
    rounds, pending = Rounds(), Pending(ORDERS.divide(11)[0], stops=True)
    rounds.add([pending])
    for attempt in range(10):
        rounds.take(attempt)
        rounds.end("Python worker exited", of_record=False)
    assert pending.open == 1
    rounds.take(10)
    rounds.confirm(10, 0, ())
    assert pending.outcome() == Outcome((), 11, 1)


@pytest.mark.parametrize("stops", [True, False], ids=["stop", "dead letters"])
def test_a_failure_that_is_told_with_its_range_needs_no_other_job(*, stops: bool) -> None:
    rounds, pending = Rounds(), Pending(ORDERS, stops)
    rounds.add([pending])
    rounds.take(1)
    kept = [at for at in offsets(ORDERS) if at not in (15, 23)]
    rounds.confirm(1, 0, passed(ORDERS, [at for at in kept if at < 15] if stops else kept), [15] if stops else [15, 23])
    assert not rounds.ready
    outcome = pending.outcome()
    assert copied(outcome) == [at for at in kept if at < outcome.next_offset]
    assert outcome.next_offset == (15 if stops else 30)
    assert outcome.stop == (Failure(15) if stops else None)
    assert outcome.failures == (() if stops else (Failure(15), Failure(23)))
    assert outcome.filtered == 0


def test_damaged_bytes_stop_a_partition_even_where_failures_become_dead_letters() -> None:
    rounds, pending = Rounds(), Pending(ORDERS, stops=False)
    rounds.add([pending])
    rounds.take(1)
    rounds.damaged(1, 0, 16, "does not decompress")
    (before,) = rounds.take(2)
    assert (before.start, before.end) == (10, 16)
    rounds.confirm(2, 0, ())
    assert not rounds.ready
    assert pending.outcome() == Outcome((), 16, 6, (), Failure(16, "does not decompress", damaged=True))


def test_a_range_that_has_no_room_for_what_the_sql_makes_of_it_is_asked_for_again_with_more() -> None:
    rounds, pending = Rounds(), [Pending(ORDERS, stops=True), Pending(ORDERS, stops=True)]
    rounds.add(pending)
    assert [rounds.take(1), rounds.round_weight] == [[ORDERS, ORDERS], 1]
    rounds.grown(1, 0)
    rounds.grown(1, 1)
    for attempt, weight in ((2, 8), (3, 4)):
        assert [rounds.take(attempt), rounds.round_weight] == [[ORDERS], weight]
        rounds.confirm(attempt, 0, ())
    assert [one.open for one in pending] == [0, 0]
    assert not rounds.ready
    rounds.add([Pending(ORDERS, stops=True)])
    weights = []
    for attempt in range(4, 8):
        rounds.take(attempt)
        weights.append(rounds.round_weight)
        rounds.grown(attempt, 0)
    assert weights == [2, 16, 128, 1024]


def test_case_504_after_a_record_that_grew_the_next_ones_soon_count_as_one_row_again() -> None:
    # One record that grew by megabytes made all later ones a thousand times as slow.
    rounds, weights = Rounds(), []
    for attempt in range(6):
        if not rounds.ready:
            rounds.add([Pending(ORDERS, stops=True)])
        rounds.take(attempt)
        weights.append(rounds.round_weight)
        if attempt == 0:
            rounds.grown(attempt, 0)
        else:
            rounds.confirm(attempt, 0, ())
    assert weights == [1, 8, 4, 2, 1, 1]


def test_the_most_that_a_record_counts_as_is_as_many_rows_as_spark_takes_at_once() -> None:
    rounds, weights = Rounds(), []
    rounds.add([Pending(ORDERS, stops=True)])
    for attempt in range(5):
        rounds.take(attempt)
        weights.append(rounds.round_weight)
        rounds.grown(attempt, 0)
    assert weights == [1, 8, 64, 512, 2000]


def test_nobody_waits_for_a_range_that_is_forgotten() -> None:
    rounds, pending = Rounds(), Pending(ORDERS, stops=True)
    other = Pending(ORDERS, stops=True)
    rounds.add([pending, other])
    rounds.take(1)
    rounds.forget([pending])
    rounds.confirm(1, 0, ())
    assert rounds.ready
    rounds.confirm(1, 1, ())
    assert other.open == 0
    assert not rounds.ready


@pytest.mark.parametrize("stops", [True, False], ids=["stop", "dead letters"])
def test_case_963_a_record_behind_a_hole_fails_at_its_own_offset(*, stops: bool) -> None:
    # Its range's first offset was blamed, then the next one: as dead letters, more records failed than there are.
    behind = Range(Partition("orders", 0), 5, 12, (batch(8, ((8, 1),)),), 1000)
    rounds, pending = Rounds(), Pending(behind, stops)
    rounds.add([pending])
    rounds.take(1)
    rounds.end("no number", of_record=True)
    assert not rounds.ready
    failure = Failure(8, "no number")
    expected = Outcome((), 8, 0, (), failure) if stops else Outcome((), 12, 0, (failure,))
    assert pending.outcome() == expected
