"""A failback: what promoted copies took goes back to their sources, exactly once; then the link copies as before.

1. ``failing back`` in every lane; each run leaves its name in the first one, so that of two the later one goes on.
2. The link in reverse begins, and copies until nothing is left, and the copies take no more.
3. Its lanes are fenced. Then every position of the link moves past what was copied back, while nothing is copied yet.
4. Are the copies still where they ended? Then ``active`` in every lane, else copying back goes on.

Killed anywhere, the same command again goes on: a position that has moved is moved again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.errors import LinkRefused
from appliance.failover.link_states import Moves
from appliance.failover.model.failback_plan import Refusal, Seed, returned
from appliance.failover.model.failback_report import FailbackReport, ReturnedPartition
from appliance.failover.operation import Operation
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import Gap
from appliance.link.model.copy_states import LINK, CopyEvent, CopyState, StateRecord, States, change, effective
from appliance.link.model.position import Position
from appliance.link.model.replicas import Replica, discover, lanes_of, too_small
from appliance.replicator.failback_link import ReverseLink
from appliance.replicator.write.copies import as_found

_PAUSE = 0.5
_STILL = 4
"""Looks in a row by which nothing is left and no copy has grown."""

_SAY_AGAIN = 10
"""Looks between two lines of progress."""

_NAMED = 10

_BACK = (CopyState.PROMOTED, CopyState.FAILING_BACK)

_RUN, _GENERATION = "run", "generation"
"""Details of the state: which run of the command it is in, and its number."""


async def failback(operation: Operation) -> FailbackReport:
    """Bring back what the promoted copies took, and let the link copy as before.

    Raises:
        LinkRefused: a partition cannot be failed back, or another failback has taken over.
        SettingsError: nothing fits ``--topic``, or nobody can be asked.
        ApplianceError: a cluster does not answer; run again, it goes on.
    """
    link, choice = operation.link, operation.choice
    await link.read()
    run = _Run(operation)
    known = {topic for topic, _ in link.positions} | link.states.keys() - {LINK}
    subjects = choice.subjects(known)
    planned = change(link.states, subjects, CopyEvent.FAIL_BACK, link.stamp)
    replicas = await run.replicas()
    await run.reverse.read()
    seeds = await run.reverse.plan(replicas, run.failback_of) if replicas else {}
    if choice.dry_run:
        would = tuple(record.topic for record in planned.records) or tuple(run.failing(subjects))
        partitions = tuple(ReturnedPartition(r.source_topic, r.partition, each.diverged) for r, each in seeds.items())
        return FailbackReport(operation.naming.replicator, True, would, planned.kept, partitions)
    if planned.records:
        _tell_diverged(operation, seeds)
        names = ", ".join(record.subject for record in planned.records)
        await operation.consent(f"fail back {names}, once the producers at the copies are stopped")
    await link.change(subjects, CopyEvent.FAIL_BACK)
    failing = run.failing(subjects)
    if not failing:
        return FailbackReport(operation.naming.replicator, kept=planned.kept)
    await run.take_over(failing)
    partitions = await run.copy_back()
    await link.change(failing, CopyEvent.RETURNED)
    return FailbackReport(operation.naming.replicator, False, tuple(failing), planned.kept, partitions)


def _tell_diverged(operation: Operation, seeds: Mapping[Replica, Seed]) -> None:
    for replica, each in seeds.items():
        for line in ReturnedPartition(replica.source_topic, replica.partition, each.diverged).lines():
            operation.tell(line)


@dataclass(frozen=True, slots=True)
class _Return:
    """A partition with what is needed to move its position."""

    reverse: Position | None
    ends: "_Ends"
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The ends and the stable ends of copies, by metadata."""

    metadata: Metadata
    ends: Mapping[Partition, int]
    stable: Mapping[Partition, int]


@dataclass(slots=True)
class _Run:
    """One run of the command."""

    operation: Operation
    reverse: ReverseLink = field(init=False)

    def __post_init__(self) -> None:
        self.reverse = ReverseLink(self.operation, self.id)

    @property
    def id(self) -> str:
        return self.operation.link.stamp.change

    def failback_of(self, topic: str) -> str:
        """The id of the failback that a topic is in; of one that has not begun, this run's."""
        states = self.operation.link.states
        record = states.get(topic) or states.get(LINK)
        return record.change if record and record.state is CopyState.FAILING_BACK else self.id

    def failing(self, subjects: object) -> list[str]:
        """The subjects of the command that fail back now."""
        states, takes = self.operation.link.states, self.operation.choice.takes
        if subjects is None:
            return [subject for subject in sorted({LINK, *states}) if effective(states, subject) is _BACK[1]]
        topics = {topic for topic, _ in self.operation.link.positions} | states.keys() - {LINK}
        return [topic for topic in sorted(topics) if takes(topic) and effective(states, topic) is _BACK[1]]

    async def replicas(self) -> list[Replica]:
        """The partitions that the command is for, as both clusters have them now.

        Raises:
            LinkRefused: some could not be brought back as the topics are.
        """
        operation = self.operation
        states, naming = operation.link.states, operation.naming

        def takes(topic: str) -> bool:
            return operation.choice.takes(topic) and effective(states, topic) in _BACK

        source, destination = await operation.source.metadata(None), await operation.destination.metadata(None)
        found = discover(source, destination, naming)
        faults = [f"{topic}: {reason}" for topic, reason in found.unfit.items() if takes(topic)]
        faults += [too_small(topic, copy) for topic, copy in found.smaller if takes(topic.name)]
        for topic in sorted({topic for topic, _ in operation.link.positions if takes(topic)}):
            original, copy = source.topics.get(topic), destination.topics.get(naming.destination(topic))
            if copy is not None and original is None:
                faults.append(f"{topic} is not at the source any more, and {copy.name} is there")
            elif copy is None and original is not None:
                faults.append(f"{naming.destination(topic)} is not at the destination any more")
            elif copy is not None and original is not None and len(copy.leaders) > len(original.leaders):
                counts = f"{len(copy.leaders)} partitions, and {topic} has {len(original.leaders)}"
                faults.append(f"{copy.name} has {counts}: give {topic} as many")
            elif original is not None and not naming.copies(topic, original.internal):
                faults.append(f"{topic} is not chosen by REPLICA_TOPICS_SOURCE_REGEX any more")
        if faults:
            raise LinkRefused("cannot be failed back: " + "; ".join(faults[:_NAMED]))
        return [replica for replica in found.replicas if takes(replica.source_topic)]

    async def take_over(self, failing: Sequence[str]) -> None:
        """Leave this run's name and number with what fails back, before anything is copied; earlier runs end at that.

        Raises:
            LinkRefused: another run has finished meanwhile.
        """
        link = self.operation.link

        def ours(states: States) -> list[StateRecord]:
            records = []
            for subject in failing:
                record = states.get(subject) or states.get(LINK)
                if record is None or record.state is not CopyState.FAILING_BACK:
                    raise LinkRefused("another failback of this link has finished meanwhile: see `appliance status`")
                self.reverse.generation = max(self.reverse.generation, record.details.get(_GENERATION, 0) + 1)
                records.append(replace(record, topic=subject))
            details = {_RUN: self.id, _GENERATION: self.reverse.generation}
            return [replace(record, details=details) for record in records]

        def require(states: States) -> None:
            held = [states.get(subject) for subject in failing]
            if not all(record is not None and self._is_ours(record) for record in held):
                raise LinkRefused("another failback of this link has taken over, or finished: see `appliance status`")

        await link.note(ours)
        link.require = require
        await link.read()
        require(link.states)

    def _is_ours(self, record: StateRecord) -> bool:
        """True of what this run fails back, or has returned: a write may be tried once more."""
        returned_by_us = record.state is CopyState.ACTIVE and record.change == self.id
        return returned_by_us or record.details.get(_RUN) == self.id

    async def copy_back(self) -> tuple[ReturnedPartition, ...]:
        """Copy back until nothing is left, and move the link's positions past that; what was done by partition."""
        replicas = await self.replicas()
        await self.reverse.make()
        await self.reverse.begin(replicas, self.failback_of)
        while True:
            async with self.reverse.copying(replicas) as running:
                await self._until_still(replicas, running)
            await self.reverse.fence(replicas)
            found = await self._returns(replicas)
            if await self._left(replicas):
                continue
            await self._move(replicas, found)
            if not await self._left(replicas) and set(await self.replicas()) == set(replicas):
                return tuple(self._partition(replica, each) for replica, each in found.items())
            replicas = await self.replicas()
            await self.reverse.begin(replicas, self.failback_of)

    async def _until_still(self, replicas: Sequence[Replica], running: "asyncio.Task[None]") -> None:
        """Returns when all is copied back, and was so for some looks.

        Raises:
            LinkRefused: a partition has stopped, or another failback has taken over.
        """
        looks = still = 0
        while still < _STILL and not running.done():
            self.reverse.require_going()
            left = await retry_while_busy(lambda: self._look(replicas))
            still = 0 if left else still + 1
            if left and looks % _SAY_AGAIN == 0:
                more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
                names = ", ".join(left[:_NAMED]) + more
                self.operation.tell(f"copying back, and waiting for the producers there to stop: {names}")
            looks += 1
            await asyncio.sleep(_PAUSE)

    async def _look(self, replicas: Sequence[Replica]) -> list[str]:
        await self.operation.link.read()
        self.operation.link.require(self.operation.link.states)
        await self.reverse.read()
        return await self._left(replicas)

    async def _left(self, replicas: Sequence[Replica]) -> list[str]:
        """The copies that hold what was not copied back yet, or an open transaction."""
        found = await self._ends(replicas)
        left = []
        for replica in replicas:
            held = self.reverse.position(replica)
            ends = {found.ends[replica.copy], found.stable[replica.copy]}
            if held is None or ends != {held.next_offset}:
                left.append(f"{replica.destination_topic}-{replica.partition}")
        return left

    async def _ends(self, replicas: Sequence[Replica]) -> _Ends:
        destination = self.operation.destination
        metadata = await destination.metadata(sorted({replica.destination_topic for replica in replicas}))
        copies = [replica.copy for replica in replicas]
        ends = await list_offsets(destination, metadata, copies, Bound.END)
        return _Ends(metadata, ends, await list_offsets(destination, metadata, copies, Bound.STABLE_END))

    async def _returns(self, replicas: Sequence[Replica]) -> dict[Replica, _Return]:
        """The moves of the positions, once the link in reverse is fenced.

        Raises:
            LinkRefused: somebody else has written between what was copied back; unless losses are allowed.
        """
        ends = await self._ends(replicas)
        found, foreign = {}, []
        for replica in replicas:
            begun = self.reverse.begun(replica, self.failback_of(replica.source_topic))
            assert begun is not None
            gaps = [replace(begun, partition=replica.source, cause="it was never copied before a failback")]
            if written := await self.reverse.written_there(replica, begun):
                foreign.append(f"{replica.name} offsets {written[0]} to {written[1] - 1}")
                cause = "a producer wrote between what was copied back"
                gaps.append(Gap(replica.source, replica.source_id, *written, cause, begun.found))
            real = tuple(gap for gap in gaps if gap.first < gap.next)
            found[replica] = _Return(self.reverse.position(replica), ends, real)
        if foreign and not self.operation.choice.allow_loss:
            raise LinkRefused(
                f"a producer wrote to the source among what was copied back: {', '.join(foreign[:_NAMED])}: these "
                "records would not be copied: stop it, and give --allow-loss to leave them in the source alone"
            )
        return found

    async def _move(self, replicas: Sequence[Replica], found: Mapping[Replica, _Return]) -> None:
        """Move the positions past what was copied back, in every lane; the states still forbid to copy."""
        link = self.operation.link
        for index, owned in lanes_of(replicas, len(link.checkpoints)).items():

            def moves(positions: Mapping[Partition, Position], owned: Sequence[Replica] = owned) -> Moves:
                moved: dict[Replica, Position] = {}
                gaps: list[Gap] = []
                for replica in owned:
                    each = found[replica]
                    end = as_found(each.ends.ends[replica.copy], each.ends.metadata, replica.copy)
                    open_from = each.ends.stable[replica.copy]
                    position = returned(replica, positions[replica.source], each.reverse, end, open_from)
                    if isinstance(position, Refusal):
                        raise LinkRefused(f"cannot be failed back: {position}")
                    moved[replica] = position
                    gaps += each.gaps
                return moved, gaps

            await link.move(index, moves)

    def _partition(self, replica: Replica, found: _Return) -> ReturnedPartition:
        spans = [(gap.first, gap.next) for gap in found.gaps]
        begun = self.reverse.begun(replica, self.failback_of(replica.source_topic))
        assert begun is not None
        diverged = begun.first, begun.next
        others = [span for span in spans if span != diverged]
        records = found.reverse.records if found.reverse else 0
        return ReturnedPartition(
            replica.source_topic, replica.partition, diverged, records, others[0] if others else None
        )
