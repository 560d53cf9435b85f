"""What the SQL is given first in a process: a range in which processes end is divided down to its record."""

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from appliance.engine.model.chunk import Chunk, advanced
from appliance.engine.model.ranges import Trying
from appliance.engine.write.lane_partitions import LanePartitions
from appliance.engine.write.trials import Trials
from appliance.errors import BrokerBusy, Fenced, PartitionStopped, ProcessFailed
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.position import Position, SourcePlace, Trial
from appliance.link.model.replicas import Replica
from appliance.link.model.states import LaneState
from tests.support.record_batches import outgoing_of, record

ID = uuid.UUID(int=1)
POSITION = Position(ID, ID, 0, -1)


class Died(Exception):
    """The process ends."""


def replica(number: int) -> Replica:
    return Replica("orders", number, "orders.copy", ID, ID)


@dataclass
class Destination:
    """What the destination remembers of partitions of ``end`` records each, from process to process.

    A process dies when the SQL is given one of ``poison``, and sometimes by chance.
    """

    end: int
    poison: Collection[tuple[int, int]]
    chance: random.Random
    killed: float = 0.0
    positions: dict[Replica, Position] = field(default_factory=dict)
    given: list[dict[int, tuple[int, int]]] = field(default_factory=list)

    state = LaneState.COPYING

    def __post_init__(self) -> None:
        self.replicas = [*self.positions]

    @property
    def checkpoint(self) -> LaneCheckpoint:
        return LaneCheckpoint({of.source: held for of, held in self.positions.items()})

    @property
    def lane(self) -> "Destination":
        return self

    @property
    def reader(self) -> "Destination":
        return self

    def forget(self, _: Sequence[Replica]) -> None:
        pass

    def position(self, of: Replica) -> Position:
        return self.positions[of]

    async def commit(self, chunks: Sequence[Chunk], base: Mapping[Replica, Position]) -> None:
        self.positions |= base
        for chunk in chunks:
            self.positions[chunk.replica] = advanced(self.positions[chunk.replica], [chunk])

    async def settle(self, of: Replica, reason: PartitionStopped) -> None:
        self.positions[of] = self.positions[of].stop(str(reason), 1)

    async def transform(self, chunks: Sequence[Chunk]) -> None:
        """The SQL, and the transaction behind it."""
        spans = {each.replica.partition: (self.position(each.replica).next_offset, each.next_offset) for each in chunks}
        self.given.append(spans)
        if any(number in spans and spans[number][0] <= at < spans[number][1] for number, at in self.poison):
            raise Died
        if self.chance.random() < self.killed:
            raise Died
        await self.commit(chunks, {})

    async def process(self) -> bool:
        """A process from its start to its death, True, or until there is nothing to copy."""
        own = trials(self, self.transform)
        try:
            while open_ := [each for each, held in self.positions.items() if self._is_open(held)]:
                await own.each([self.read(each) for each in open_])
        except Died:
            return True
        return False

    def _is_open(self, held: Position) -> bool:
        return not held.stopped and held.next_offset < self.end

    def read(self, of: Replica) -> Chunk:
        start = self.positions[of].next_offset
        end = min(start + self.chance.choice([1, 7, 100, 1000]), self.end)
        return Chunk(of, outgoing_of([record(at, b"") for at in range(start, end)], end), end, -1)


def destination(partitions: int, end: int, poison: Collection[tuple[int, int]], seed: int, **more: Any) -> Destination:
    positions = {replica(number): POSITION for number in range(partitions)}
    return Destination(end, poison, random.Random(seed), positions=positions, **more)


def trials(held: Destination, step: Callable[[Sequence[Chunk]], Awaitable[None]]) -> Trials:
    """Those of a process that pauses nowhere."""
    return Trials(cast("LanePartitions", held), step, apart_seconds=0.0, death_seconds=0.0)


@pytest.mark.parametrize("seed", range(20))
async def test_a_record_that_ends_each_process_is_stopped_alone_after_some_and_all_others_are_copied(seed: int) -> None:
    chance = random.Random(seed)
    poison = {number: chance.randrange(300) for number in chance.sample(range(3), chance.randint(1, 2))}
    held = destination(3, 300, poison.items(), seed)
    deaths = 0
    while await held.process():
        deaths += 1
    assert deaths <= 14 * len(poison)
    for number in range(3):
        position = held.positions[replica(number)]
        assert position.next_offset == poison.get(number, 300)
        if number in poison:
            assert f"orders-{number} offset {poison[number]} fails in the SQL" in position.stopped
        else:
            assert not position.stopped


@pytest.mark.parametrize("seed", range(20))
async def test_processes_that_are_killed_at_any_time_blame_no_record(seed: int) -> None:
    held = destination(3, 300, (), seed, killed=0.2)
    while await held.process():
        pass
    assert [(each.next_offset, each.stopped) for each in held.positions.values()] == [(300, "")] * 3


async def test_what_has_ended_no_process_or_fewer_is_tried_first() -> None:
    held = destination(2, 1, {(0, 0)}, 1)
    for _ in range(3):
        assert await held.process()
    first, other = held.positions.values()
    assert (other.next_offset, first.stopped) == (1, "")


async def test_what_was_passed_once_in_a_process_is_not_written_down_again() -> None:
    held = destination(1, 3000, (), 1)
    await held.process()
    assert held.positions[replica(0)].trial is None
    assert len(held.given) > 3


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_stop_in_a_trial_counts_for_nothing_unless_the_sql_hangs(*, hangs: bool) -> None:
    held, given = destination(1, 300, (), 1), asyncio.Event()
    found = Trial(0, 300, 1)
    held.positions[replica(0)] = replace(POSITION, trial=found)

    async def transform(_: Sequence[Chunk]) -> None:
        if hangs and not given.is_set():
            given.set()
            raise ProcessFailed("no progress")
        given.set()
        await asyncio.Event().wait()

    own = trials(held, transform)
    if hangs:
        with pytest.raises(ProcessFailed):
            await own.each([held.read(replica(0))])
    trying = asyncio.create_task(own.each([held.read(replica(0))]))
    await given.wait()
    await asyncio.sleep(0)
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying
    trial = held.positions[replica(0)].trial
    assert trial is not None
    assert trial.tries == (2 if hangs else 1)


def test_a_trial_is_alone_first_and_then_divided_down_to_a_record() -> None:
    assert Trying.of(POSITION, 100) == Trying(100, 100, 1)
    assert Trying.of(replace(POSITION, trial=Trial(0, 100, 1)), 40) == Trying(100, 100, 2)
    assert Trying.of(replace(POSITION, trial=Trial(0, 100, 2)), 40) == Trying(100, 7, 2)
    assert Trying.of(replace(POSITION, trial=Trial(0, 7, 2)), 40) == Trying(7, 1, 2)
    assert Trying.of(replace(POSITION, trial=Trial(0, 1, 2)), 40) == Trying(1, 1, 3)
    assert Trying.of(replace(POSITION, next_offset=5, trial=Trial(0, 7, 2)), 40) == Trying(40, 35, 1, 5)


async def test_case_1041_no_restart_counts_a_trial_that_an_error_has_ended_which_is_not_the_sqls() -> None:
    # About eight ordinary restarts while a copy could not be written have stopped a partition before its next record.
    held = destination(1, 300, (), 1)

    async def unwritable(_: Sequence[Chunk]) -> None:
        raise BrokerBusy("orders.copy", "NOT_ENOUGH_REPLICAS")

    for found in (None, Trial(0, 300, 1)):
        held.positions[replica(0)] = replace(POSITION, trial=found)
        own = trials(held, unwritable)
        for number in range(9):
            with pytest.raises(BrokerBusy):
                await own.each([Chunk(replica(0), outgoing_of([record(0, b"")], 300), 300, -1)])
            assert (held.positions[replica(0)].trial != found) is (number == 0)  # then the SQL has passed
            await own.undo()  # as each started lane does
            assert held.positions[replica(0)].trial == found
    own = trials(held, unwritable)
    with pytest.raises(BrokerBusy):
        await own.each([held.read(replica(0))])
    held.positions[replica(0)] = replace(POSITION, next_offset=5)  # an operator has moved it meanwhile
    await own.undo()
    assert held.positions[replica(0)] == replace(POSITION, next_offset=5)


async def test_case_1050_the_position_of_a_removed_topic_is_not_looked_for() -> None:
    # The topic's removal ended the trial of another one.
    held = destination(1, 300, (), 1)

    async def fenced(_: Sequence[Chunk]) -> None:
        raise Fenced("orders.copy")

    own = trials(held, fenced)
    with pytest.raises(Fenced):
        await own.each([held.read(replica(0))])
    held.positions.clear()  # by a command that has fenced the lane, whose reader still has the partition
    await own.undo()
    assert held.positions == {}


@pytest.mark.parametrize("found", [None, Trial(200, 300, 2)])
async def test_case_1044_a_partition_that_is_reset_to_an_earlier_place_is_tried_once_from_there(
    found: Trial | None,
) -> None:
    # Each chunk up to the end of its old trials, maybe millions of records on, took two transactions.
    held, begun = destination(1, 3000, (), 1), list[Trial]()

    async def transform(chunks: Sequence[Chunk]) -> None:
        trial = held.positions[replica(0)].trial
        begun.extend([trial] if trial else [])
        await held.commit(chunks, {})

    own = trials(held, transform)
    for start, ends in ((200, (300, 2000)), (0, (10, 20, 1000, 2500)), (100, (200, 3000))):
        held.positions[replica(0)] = replace(POSITION, next_offset=start, trial=found if start == 200 else None)
        begun.clear()
        for end in ends:
            at = held.positions[replica(0)].next_offset
            await own.each([Chunk(replica(0), outgoing_of([record(at, b"")], end), end, -1)])
        assert held.positions[replica(0)].next_offset == ends[-1]
        if start == 0:
            assert begun == [Trial(0, 10, 1)]
        if start == 100:
            assert begun == []


def test_case_1044_a_position_that_begins_again_has_no_trial() -> None:
    tried = replace(POSITION, trial=Trial(0, 7, 3))
    assert tried.begin_again(ID, ID, SourcePlace(0, -1)).trial is None
