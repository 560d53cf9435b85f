"""A failback: the records of promoted copies go back to their sources, exactly once; then the link copies as before.

1. ``failing back`` in every lane; each run leaves its name in the first one, so that of two the later one continues.
2. The link in reverse begins. Source records that were never copied are kept elsewhere, if the operator wants that.
3. It copies until nothing is left and the copies take no more. Then its lanes are fenced and copy no more.
4. Every position of the link moves past the records copied back, with its map, while nothing is copied yet.
5. If the copies still end there, the groups return; else copying back continues.
6. ``active`` in every lane.

After a kill anywhere, the same command continues: a position that has moved is moved again.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.commands.failback.beginning import begin, plan, require_times
from appliance.commands.failback.diverged import keep, require_names
from appliance.commands.failback.model.failback_plan import GIVE_UP, Seed
from appliance.commands.failback.model.failback_report import FailbackReport, ReturnedPartition
from appliance.commands.failback.positions import CopyEnds, Return, move, returns
from appliance.commands.failback.returning_groups import return_groups
from appliance.commands.failback.reverse_link import BEGUN, ReverseLink
from appliance.commands.run.link_lanes import Subjects
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import Plan, constant
from appliance.errors import LinkRefused
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.copy_states import (
    LINK,
    CopyEvent,
    CopyState,
    StateChange,
    StateRecord,
    States,
    change,
    effective,
)
from appliance.link.model.replicas import Replica, discover
from appliance.listing import some

_PAUSE = 0.5
_STILL = 4
"""Number of looks in a row that must find nothing left and no copy grown."""

_SAY_AGAIN = 10
"""Number of looks between two progress lines."""

_NAMED = 10

_BACK = (CopyState.PROMOTED, CopyState.FAILING_BACK)

_RUN, _GENERATION = "run", "generation"
"""Details of the state: the command's run that it belongs to, and the number of that run."""


async def failback(operation: Operation) -> Plan[FailbackReport]:
    """Bring back the records of promoted copies, and resume the link."""
    lanes, choice = operation.lanes, operation.choice
    if operation.naming.sharing.others_write:
        return await _share_again(operation)
    await lanes.read()
    run = _Run(operation)
    subjects = operation.subjects()
    planned = change(lanes.states, subjects, CopyEvent.FAIL_BACK, lanes.stamp)
    replicas = await run.replicas()
    await run.reverse.read()
    seeds = await plan(run.reverse, replicas)
    await require_times(run.reverse, {replica.source_topic for replica in replicas})
    if choice.keep_diverged:
        require_names(run.reverse, {replica.source_topic for replica in replicas})
    partitions = tuple(_planned(replica, each) for replica, each in seeds.items())

    async def apply() -> FailbackReport:
        await lanes.change(subjects, CopyEvent.FAIL_BACK)
        failing = run.failing(subjects)
        if not failing:
            return FailbackReport(operation.naming.replicator, kept=planned.kept)
        await run.take_over(failing)
        returned = await run.copy_back()
        groups = await _return_groups(operation, {each.topic for each in returned})
        await lanes.change(failing, CopyEvent.RETURNED)
        return FailbackReport(operation.naming.replicator, False, tuple(failing), planned.kept, returned, groups)

    foreseen = constant(_foreseen(run, subjects, planned, partitions))
    if not planned.records:
        return Plan(foreseen, apply)
    question = f"fail back {planned.names}, once the producers at the copies are stopped"
    return Plan(foreseen, apply, question, [line for each in partitions for line in each.lines()])


async def _share_again(operation: Operation) -> Plan[FailbackReport]:
    """Let promoted shared copies follow again: others may always write there, and nothing is brought back."""
    lanes, run = operation.lanes, _Run(operation)
    await lanes.read()
    subjects = operation.subjects()
    if begun := [each.subject for each in lanes.states.values() if BEGUN in each.details]:
        raise LinkRefused(f"a failback of {begun[0]} has begun: end it with REPLICA_FAN_IN=no, then share the copies")
    planned = change(lanes.states, subjects, CopyEvent.FAIL_BACK, lanes.stamp)

    async def apply() -> FailbackReport:
        await lanes.change(subjects, CopyEvent.FAIL_BACK)
        failing = run.failing(subjects)
        await lanes.change(failing, CopyEvent.RETURNED)
        return FailbackReport(operation.naming.replicator, False, tuple(failing), planned.kept)

    question = f"copy {planned.names} again; the copies are shared, so nothing is brought back of them"
    return Plan(constant(_foreseen(run, subjects, planned)), apply, question if planned.records else "")


def _foreseen(
    run: "_Run", subjects: Subjects, planned: StateChange, partitions: tuple[ReturnedPartition, ...] = ()
) -> FailbackReport:
    would = tuple(record.topic for record in planned.records) or tuple(run.failing(subjects))
    return FailbackReport(run.operation.naming.replicator, True, would, planned.kept, partitions)


async def _return_groups(operation: Operation, topics: Collection[str]) -> Mapping[str, str] | None:
    """The groups whose positions differ from those at the copies."""
    groups = await return_groups(operation, topics)
    if groups is None and not operation.choice.allow_loss:
        what = "the groups' offsets are not told, and would stay where they were at the source before"
        raise LinkRefused(f"{what}: run it again, or with --allow-loss; all records are copied back")
    return groups


def _planned(replica: Replica, planned: Seed) -> ReturnedPartition:
    return ReturnedPartition(replica.source_topic, replica.partition, planned.diverged, deleted=planned.deleted)


@dataclass(slots=True)
class _Run:
    """One run of the command; once it has ``taken`` over, it is only for what bears its name."""

    operation: Operation
    reverse: ReverseLink = field(init=False)
    taken: bool = False

    def __post_init__(self) -> None:
        self.reverse = ReverseLink(self.operation)

    @property
    def id(self) -> str:
        """The id of this run of the command."""
        return self.operation.lanes.stamp.change

    def failing(self, subjects: object) -> list[str]:
        """The subjects of the command that fail back now."""
        states, takes = self.operation.lanes.states, self.operation.choice.takes
        if subjects is None:
            return [subject for subject in sorted({LINK, *states}) if effective(states, subject) is _BACK[1]]
        topics = {topic for topic, _ in self.operation.lanes.positions} | states.keys() - {LINK}
        return [topic for topic in sorted(topics) if takes(topic) and effective(states, topic) is _BACK[1]]

    async def replicas(self) -> list[Replica]:
        """The partitions that the command is for, as both clusters have them now."""
        operation = self.operation
        states, naming = operation.lanes.states, operation.naming

        def takes(topic: str) -> bool:
            record = states.get(topic) or states.get(LINK)
            fails_back = record is not None and record.state in _BACK and (not self.taken or self._is_ours(record))
            return fails_back and operation.choice.takes(topic)

        source, destination = await operation.source.metadata(None), await operation.destination.metadata(None)
        discovered = discover(source, destination, naming)
        faults = [f"{topic}: {reason}" for topic, reason in discovered.unfit.items() if takes(topic)]
        for topic, copy in discovered.smaller:
            if takes(topic.name):
                counts = f"{len(copy.leaders)} partitions and {topic.name} has {len(topic.leaders)}"
                faults.append(f"{copy.name} has {counts}: give {copy.name} {len(topic.leaders)} partitions")
        for name in sorted({topic for topic, _ in operation.lanes.positions if takes(topic)}):
            original, promoted = source.topics.get(name), destination.topics.get(naming.destination(name))
            if promoted is not None and original is None:
                faults.append(f"{name} is not at the source any more, and {promoted.name} is there: {GIVE_UP}")
            elif promoted is None and original is not None:
                faults.append(f"{naming.destination(name)} is not at the destination any more: {GIVE_UP}")
            elif promoted is not None and original is not None and len(promoted.leaders) > len(original.leaders):
                counts = f"{len(promoted.leaders)} partitions, and {name} has {len(original.leaders)}"
                faults.append(f"{promoted.name} has {counts}: give {name} as many")
            elif original is not None and not naming.copies(name, original.internal, source.topics):
                faults.append(f"{name} is not chosen by {naming.policy.chosen_by} any more")
        if faults:
            raise LinkRefused("cannot be failed back: " + some(faults, _NAMED, "; "))
        return [replica for replica in discovered.replicas if takes(replica.source_topic)]

    async def take_over(self, failing: Sequence[str]) -> None:
        """Leave this run's name and number in the failing topics before anything is copied; this ends earlier runs."""
        lanes = self.operation.lanes
        own: set[str] = set()

        def ours(states: States) -> list[StateRecord]:
            own.update(states, failing)
            records = []
            for subject in failing:
                record = states.get(subject) or states.get(LINK)
                if record is None or record.state is not CopyState.FAILING_BACK:
                    raise LinkRefused("another failback of this link has finished meanwhile: see `appliance status`")
                self.reverse.be_newer_than(record.details.get(_GENERATION, 0))
                records.append(replace(record, topic=subject))
            ours = {_RUN: self.id, _GENERATION: self.reverse.generation}
            return [replace(record, details={**record.details, **ours}) for record in records]

        def require(states: States) -> None:
            failing_now = [states.get(subject) for subject in failing]
            of_another = LINK in failing and not states.keys() <= own  # a topic has left the link's state since
            if of_another or not all(record is not None and self._is_ours(record) for record in failing_now):
                raise LinkRefused("another failback of this link has taken over, or finished: see `appliance status`")

        await lanes.note(ours)
        lanes.require = require
        await lanes.read()
        require(lanes.states)
        self.taken = True

    def _is_ours(self, record: StateRecord) -> bool:
        """True of topics that this run fails back, or has returned: a write may be retried."""
        returned_by_us = record.state is CopyState.ACTIVE and record.change == self.id
        return returned_by_us or record.details.get(_RUN) == self.id

    async def copy_back(self) -> tuple[ReturnedPartition, ...]:
        """Copy back until nothing is left, and move the link's positions past that; the outcome by partition."""
        await self.reverse.make()
        while True:
            replicas = await self.replicas()
            await begin(self.reverse, replicas)
            await self._note_begun()
            if self.operation.choice.keep_diverged:
                await keep(self.reverse, replicas)
            async with self.reverse.copying(replicas) as running:
                await self._until_still(replicas, running)
            await self.reverse.fence(replicas)
            outcomes = await returns(self.reverse, replicas)
            if await self._remaining(replicas):
                continue
            await move(self.reverse, outcomes)
            if not await self._remaining(replicas) and set(await self.replicas()) == set(replicas):
                return tuple(_partition(replica, each) for replica, each in outcomes.items())

    async def _note_begun(self) -> None:
        """Remember that the link in reverse has positions: if they are lost, nothing restarts from scratch."""

        def begun(states: States) -> list[StateRecord]:
            self.operation.lanes.require(states)
            ours = [record for record in states.values() if record.details.get(_RUN) == self.id]
            return [replace(record, details={**record.details, BEGUN: True}) for record in ours]

        await self.operation.lanes.note(begun)

    async def _until_still(self, replicas: Sequence[Replica], running: "asyncio.Task[None]") -> None:
        """Returns when all is copied back, by some looks in a row."""
        looks = still = 0
        while still < _STILL and not running.done():
            self.reverse.require_going(replicas)
            unfinished = await retry_while_busy(lambda: self._look(replicas))
            still = 0 if unfinished else still + 1
            if unfinished and looks % _SAY_AGAIN == 0:
                self.operation.tell(
                    f"copying back, and waiting for the producers there to stop: {some(unfinished, _NAMED)}"
                )
            looks += 1
            await asyncio.sleep(_PAUSE)

    async def _look(self, replicas: Sequence[Replica]) -> list[str]:
        await self.operation.lanes.read()
        self.operation.lanes.require(self.operation.lanes.states)
        await self.reverse.read()
        return await self._remaining(replicas)

    async def _remaining(self, replicas: Sequence[Replica]) -> list[str]:
        """The copies that hold records not copied back yet, or an open transaction."""
        ends = await CopyEnds.of(self.operation.destination, replicas)
        return [ends.name(each) for each in replicas if ends.has_more(each, self.reverse.position(each))]


def _partition(replica: Replica, outcome: Return) -> ReturnedPartition:
    spans = (outcome.begun.first, outcome.begun.next), outcome.records, outcome.written_there, outcome.deleted
    kept_in = outcome.kept_in if outcome.kept is not None else ""
    return ReturnedPartition(replica.source_topic, replica.partition, *spans, outcome.kept, kept_in)
