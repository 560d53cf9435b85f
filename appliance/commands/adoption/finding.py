"""The partitions to adopt, and where copying goes on in each; nothing is written."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from appliance.clock import loop_seconds
from appliance.commands.adoption.comparing import Comparing, Terms
from appliance.commands.adoption.mirror_maker import MirrorMaker, committed_offsets, require_decided, require_stopped
from appliance.commands.adoption.model.plan import Allowed, Beginning, Logs
from appliance.commands.adoption.model.report import AdoptionReport
from appliance.commands.run.operation import Operation
from appliance.driver.establish import Establishing
from appliance.errors import BatchCorrupt, LinkRefused, PartitionStopped, SettingsError, raise_first
from appliance.kafka.client.configs import POLICY, TIMES, Setting, try_describe
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.retry import retry_while_busy
from appliance.link.client.source_places import places
from appliance.link.model.checkpoint import OPERATOR
from appliance.link.model.claims import belongs_to_another
from appliance.link.model.copy_states import CopyState, StateRecord, effective
from appliance.link.model.position import UNKNOWN, Position
from appliance.link.model.replicas import DiscoveredTopics, Replica, discover
from appliance.logs.model.span import Span

_AT_ONCE = 4

ADOPTS = "adopts"
"""Detail of the state of a topic that is being adopted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The options beside those of every operation; ``whole``: both logs are compared from their first records on."""

    mirror: MirrorMaker
    allowed: Allowed = field(default_factory=Allowed)
    whole: bool = False


@dataclass(slots=True)
class Adoption:
    """One run of the command, as far as it only reads.

    ``beginnings`` are those of the partitions without a position; ``epochs`` are the leader epochs of their sources
    before these were compared; ``unfinished`` are topics of a run that was killed.
    """

    operation: Operation
    choice: Choice
    establishing: Establishing = field(init=False)
    positions: Mapping[Partition, Position] = field(default_factory=dict)
    beginnings: Mapping[Replica, Beginning] = field(default_factory=dict)
    epochs: Mapping[Partition, int] = field(default_factory=dict)
    unfinished: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.establishing = Establishing(self.operation.settings, self.operation.link, OPERATOR)

    async def find(self) -> None:
        """Find where each partition goes on, once MirrorMaker 2 has stopped and the link may continue."""
        if self.operation.settings.topics.fan_in:
            raise SettingsError(["REPLICA_FAN_IN=yes: a copy of several sources cannot be compared with one of them"])
        self.remarks += await self.require_stopped()
        topic = await self.establishing.check.positions()
        if fault := await self.establishing.check.fault(topic):
            raise LinkRefused(fault)
        states = topic.checkpoints[0].states if topic.checkpoints else {}
        self.positions = topic.positions
        source, there = await self.operation.source.metadata(None), await self.operation.destination.metadata(None)
        discovered = discover(source, there, self.operation.naming)
        replicas = self._chosen(discovered)
        topics = {each.source_topic for each in replicas}
        for name in sorted(topics):
            if not (state := effective(states, name)).follows:
                raise LinkRefused(f"topic {name} is {state}: it is not adopted")
        self.unfinished = {name for name in topics if is_adopting(states.get(name))}
        await self._require_ours({each.destination_topic: each.destination_id for each in replicas})
        fresh = [each for each in replicas if not self._is_known(each)]
        if len(fresh) < len(replicas):
            self.remarks.append(f"{len(replicas) - len(fresh)} partitions have a position already, and keep it")
        if not self.operation.choice.topic:
            self.remarks += [f"{each.name} has no copy: the replicator makes it" for each in discovered.missing]
        if fresh:
            self.beginnings = await self._compared(fresh)

    async def require_stopped(self) -> list[str]:
        """See that MirrorMaker 2 has stopped; the remark on what is not known."""
        mirror = self.choice.mirror
        if await require_stopped(self.operation.destination, mirror):
            return []
        what = f"there is no group {mirror.workers} at the destination, or it may not be seen"
        return [f"{what}: see for yourself that MirrorMaker 2 has stopped"]

    def _chosen(self, discovered: DiscoveredTopics) -> list[Replica]:
        """The partitions of the command's topics."""
        replicas = [*discovered.replicas, *_smaller(discovered)]
        naming, topics = self.operation.naming, {each.source_topic for each in replicas} | discovered.unfit.keys()
        chosen = self.operation.choice.subjects(topics)
        for name in sorted(topics if chosen is None else chosen):
            if name in discovered.unfit:
                raise LinkRefused(discovered.unfit[name])
        if not replicas:
            settings = f"REPLICA_TOPICS_NAMING, SOURCE_CLUSTER_ID and {naming.policy.chosen_by}"
            raise SettingsError([f"no topic has a copy called like {naming.destination('TOPIC')}: see {settings}"])
        return [each for each in replicas if chosen is None or each.source_topic in chosen]

    async def _require_ours(self, copies: Mapping[str, Any]) -> None:
        registry = self.operation.link.registry
        await registry.refresh()
        for copy, claim in registry.ledger.of_others(copies).items():
            raise LinkRefused(belongs_to_another(copy, claim, self.operation.naming))

    def _is_known(self, replica: Replica) -> bool:
        """True of a partition that this link copies already."""
        position = self.positions.get(replica.source)
        return position is not None and position.next_offset != UNKNOWN

    async def _compared(self, replicas: list[Replica]) -> dict[Replica, Beginning]:
        logs, terms = await retry_while_busy(lambda: self._logs(replicas)), await self._terms(replicas)
        source, destination, at_once = self.operation.source, self.operation.destination, asyncio.Semaphore(_AT_ONCE)

        async def compare(each: Logs) -> Beginning:
            async with at_once:
                try:
                    return await Comparing(source, destination, each, terms[each.replica.source_topic]).beginning()
                except (PartitionStopped, BatchCorrupt) as error:
                    return Beginning(each, refusal=str(error))

        running = [asyncio.create_task(compare(each), name=f"adopt {each.replica.name}") for each in logs]
        try:
            return dict(zip(replicas, await asyncio.gather(*running), strict=True))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _logs(self, replicas: list[Replica]) -> list[Logs]:
        """Both logs of each partition. The copies first: their records are all in their sources' logs then."""
        source, destination, mirror = self.operation.source, self.operation.destination, self.choice.mirror
        committed = await committed_offsets(destination, mirror)
        if committed is None and not self.choice.whole:
            how = "name the offsets topic of MirrorMaker 2 by --offsets-topic, or compare both logs whole by --whole"
            raise SettingsError([f"there is no {mirror.offsets} at the destination: {how}"])
        copies, originals = [each.copy for each in replicas], [each.source for each in replicas]
        there = await destination.metadata(sorted({topic for topic, _ in copies}))
        starts, ends, stable = [
            await list_offsets(destination, there, copies, bound)
            for bound in (Bound.START, Bound.END, Bound.STABLE_END)
        ]
        await require_decided(destination, there, [each for each in copies if stable[each] < ends[each]])
        at_source = await source.metadata(sorted({each.source_topic for each in replicas}))
        firsts = await list_offsets(source, at_source, originals, Bound.START)
        lasts = await list_offsets(source, at_source, originals, Bound.END)
        self.epochs = {key: end.leader_epoch for key, end in (await places(source, at_source, lasts)).items()}
        return [
            Logs(
                each,
                Span(firsts[each.source], lasts[each.source]),
                Span(starts[each.copy], ends[each.copy]),
                (committed or {}).get(each.source),
            )
            for each in replicas
        ]

    async def _terms(self, replicas: list[Replica]) -> dict[str, Terms]:
        """The terms of the comparison of each source topic."""
        copies, keys = {each.source_topic: each.destination_topic for each in replicas}, (POLICY, TIMES)
        at_source, _ = await try_describe(self.operation.source, list(copies), keys)
        at_destination, failures = await try_describe(self.operation.destination, list(copies.values()), keys)
        raise_first(failures.values())
        deadline = loop_seconds() + self.operation.choice.wait
        return {
            topic: Terms(
                self.choice.allowed,
                deadline,
                self.choice.whole,
                _value(at_destination.get(copy), TIMES) != "LogAppendTime",
                "compact" in _value(at_source.get(topic), POLICY) + _value(at_destination.get(copy), POLICY),
            )
            for topic, copy in copies.items()
        }

    def report(self) -> AdoptionReport:
        """The outcome, or in a dry run the plan."""
        naming, dry_run = self.operation.naming, self.operation.choice.dry_run
        return AdoptionReport(naming.replicator, dry_run, list(self.beginnings.values()), self.remarks)


def is_adopting(record: StateRecord | None) -> bool:
    """True of the state of a topic whose adoption has not ended."""
    return record is not None and record.state is CopyState.PAUSED and bool(record.details.get(ADOPTS))


def _value(settings: Mapping[str, Setting] | None, key: str) -> str:
    setting = settings.get(key) if settings else None
    return (setting and setting.value) or ""


def _smaller(discovered: DiscoveredTopics) -> list[Replica]:
    """The partitions of copies that have fewer than their sources; the replicator adds the others."""
    return [
        Replica(topic.name, number, copy.name, topic.id, copy.id)
        for topic, copy in discovered.smaller
        for number in range(len(copy.leaders))
    ]
