"""Collect the facts of both clusters, with a few requests to each broker for any number of partitions."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from kio.schema.errors import ErrorCode

from appliance.clock import loop_seconds, now_ms
from appliance.errors import ApplianceError, BrokerRefused, TimedOut, raise_first
from appliance.grouping import grouped
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.configs import cleanup_policy
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import UNKNOWN_EPOCH, Metadata, Partition
from appliance.link.client.log_ends import EpochEnds, copy_logs
from appliance.link.client.membership import members
from appliance.link.client.source_rules import SourceRules
from appliance.link.handle import Link
from appliance.link.model.agreement import CopyLog
from appliance.link.model.checkpoint import Gap
from appliance.link.model.copy_states import LINK, CopyState, StateRecord
from appliance.link.model.link_check import PositionsTopic
from appliance.link.model.position import Position
from appliance.link.model.standby import REBALANCE_SECONDS, SESSION_SECONDS, Members
from appliance.status.model.facts import DestinationFacts, Log, Observation, SourceFacts
from appliance.status.open_transactions import OpenTransactionWatch
from appliance.status.tail import PositionsTail, newest_heartbeat

_BROKER_SECONDS = 5.0
_CHANGE_SECONDS = SESSION_SECONDS + REBALANCE_SECONDS
"""Longest time for which members come and go after a single event; what was seen before is outdated then."""

_Led = TypeVar("_Led")
_Answer = TypeVar("_Answer")


async def _of_leaders(
    cluster: KafkaCluster, by_leader: Mapping[int, _Led], ask: Callable[[_Led], Awaitable[_Answer]]
) -> list[tuple[_Led, _Answer | ApplianceError]]:
    """The answers for what each broker leads; one that does not answer keeps only its own from being known."""

    async def answered(leader: int, led: _Led) -> _Answer | ApplianceError:
        try:
            async with asyncio.timeout(_BROKER_SECONDS):
                return await ask(led)
        except TimeoutError:
            return TimedOut(f"{cluster.side} broker {leader} did not answer within {_BROKER_SECONDS:g} s")
        except ApplianceError as error:
            return error

    answers = await asyncio.gather(*(answered(*each) for each in by_leader.items()))
    if any(isinstance(answer, TimedOut) for answer in answers):
        await cluster.close()  # a missing answer on a connection would delay all later ones
    return list(zip(by_leader.values(), answers, strict=True))


class SourceFactsCollector:
    """Collects where the source's logs begin and end."""

    def __init__(self, link: Link, one_writer: bool) -> None:
        self._cluster, self._naming = link.source, link.naming
        self._open_transactions = OpenTransactionWatch(link.source)
        self._rules = SourceRules(link.source, link.destination, link.naming, one_writer)
        self._into_it: dict[str, PositionsTail] = {}
        self._epochs = EpochEnds(link.source)

    async def collect(self, positions: Mapping[Partition, Position]) -> SourceFacts:
        """Collect the facts. ``positions`` are those of the last collection: of completely copied partitions the stable
        end is not asked for, and of those whose leader has not changed no epoch, unless they end before it.

        A broker that does not answer for its own partitions does not keep the others from being known.
        """
        metadata = await self._cluster.metadata(None)
        copied = self._naming.copied(metadata.topics)
        by_leader = grouped((topic.leaders[each.number], each) for topic in copied for each in topic.partitions)
        logs: dict[Partition, Log] = {}
        unanswered = dict.fromkeys(by_leader.pop(-1, ()), "the partition has no leader now")
        for led, answer in await _of_leaders(
            self._cluster, by_leader, lambda led: self._logs(metadata, led, positions)
        ):
            if isinstance(answer, ApplianceError):
                unanswered |= dict.fromkeys(led, str(answer))
            else:
                logs |= answer
        unanswered |= await self._hidden(metadata, positions)
        holding = await self._open_transactions.collect(metadata, logs, now_ms())
        unfit = await self._rules.unfit(metadata.topics)
        return SourceFacts(metadata, logs, unanswered, holding, unfit, await self._written(metadata))

    async def _hidden(self, metadata: Metadata, positions: Collection[Partition]) -> dict[Partition, str]:
        """The copied partitions whose topics are not listed, but are there: without Describe, no list has them."""
        missing = {topic for topic, _ in positions} - metadata.topics.keys()
        there = (await self._cluster.metadata(sorted(missing))).topics if missing else {}
        refused = {name: topic.error.name.upper() for name, topic in there.items() if topic.error is not ErrorCode.none}
        remedy = "grant SOURCE_API_KEY Describe on it, or `rm-topic` if it is no more"
        return {key: f"topic {key[0]}: {refused[key[0]]}: {remedy}" for key in positions if key[0] in refused}

    async def _written(self, metadata: Metadata) -> dict[Partition, int] | None:
        """The records that links wrote at the source, by partition, as their positions there count them."""
        if not self._naming.sharing.tells_origins:
            return None
        written: dict[Partition, int] = {}
        for name in filter(self._naming.is_positions, metadata.topics):
            tail = self._into_it.setdefault(name, PositionsTail(self._cluster, name))
            try:
                await tail.advance(metadata)
            except BrokerRefused:
                return None
            for checkpoint in tail.checkpoints:
                for copy, position in checkpoint.positions.items():
                    present = metadata.topics.get(copy.topic)
                    if present and present.id == position.destination_id:
                        written[copy] = written.get(copy, 0) + position.records
        return written

    async def _logs(
        self, metadata: Metadata, led: Collection[Partition], positions: Mapping[Partition, Position]
    ) -> dict[Partition, Log]:
        ends = await list_offsets(self._cluster, metadata, led, Bound.END)
        # Where a partition is copied to its end, its last stable offset is that end.
        moving = {key for key in led if key not in positions or positions[key].next_offset != ends[key]}
        stable_ends = await list_offsets(self._cluster, metadata, moving, Bound.STABLE_END)
        starts = await list_offsets(self._cluster, metadata, moving - positions.keys(), Bound.START)
        epochs = {key: positions[key].leader_epoch for key in led if key in positions}
        short = [key for key in epochs if ends[key] < positions[key].next_offset]
        epochs_end, failures = await self._epochs.read(metadata, epochs, short)
        raise_first(failures.values())
        logs = {}
        for key, end in ends.items():
            stable_end = stable_ends.get(key, end)
            epoch = epochs.get(key, UNKNOWN_EPOCH)
            logs[key] = Log(starts.get(key, -1), stable_end, max(end, stable_end), epoch, epochs_end.get(key))
        return logs


class DestinationFactsCollector:
    """Collects the link's records at the destination."""

    def __init__(self, link: Link) -> None:
        cluster, naming = link.destination, link.naming
        self._cluster = cluster
        self._naming = naming
        self._epochs = EpochEnds(cluster)
        self._name = naming.positions_topic
        self._tail = PositionsTail(cluster, naming.positions_topic)
        self._registry = link.registry
        self._open_transactions = OpenTransactionWatch(cluster)
        self._heartbeats = naming.heartbeats_topic if naming.mirror_formats else ""
        self._members: Observation[Members] = Observation()
        self._members_at = -math.inf

    async def collect(self) -> DestinationFacts:
        """Collect the facts."""
        metadata = await self._cluster.metadata(None)
        await self._tail.advance(metadata)
        with contextlib.suppress(BrokerRefused):  # without the right to read the registry, all else is still known
            await self._registry.refresh()
        stable_ends = self._tail.stable_ends
        ends = await list_offsets(self._cluster, metadata, stable_ends, Bound.END)
        logs = {key: Log(-1, stable_end, max(stable_end, ends[key])) for key, stable_end in stable_ends.items()}
        holding = await self._open_transactions.collect(metadata, logs, now_ms())
        positions: dict[Partition, Position] = {}
        gaps: dict[Partition, tuple[Gap, ...]] = {}
        for checkpoint in self._tail.checkpoints:
            positions |= checkpoint.positions
            for gap in checkpoint.gaps.values():
                gaps[gap.partition] = (*gaps.get(gap.partition, ()), gap)
        owners = tuple(checkpoint.owner for checkpoint in self._tail.checkpoints)
        policy = await cleanup_policy(self._cluster, self._name) if owners else ""
        topic = PositionsTopic(self._name, policy, self._tail.checkpoints) if owners else None
        of_lanes = {lane: transaction for (_, lane), transaction in holding.items()}
        heartbeat = await newest_heartbeat(self._cluster, metadata, self._heartbeats)
        states = dict(self._tail.checkpoints[0].states) if owners else {}
        if deletion := self._registry.ledger.deletion:
            states = {LINK: StateRecord(LINK, CopyState.DELETED, deletion.since, deletion.deleted_by, deletion.why)}
        copies = await self._copies(metadata, positions)
        claims = dict(self._registry.ledger.claims)
        try:
            async with asyncio.timeout(_BROKER_SECONDS):
                present = await members(self._cluster, self._naming.replicator)
            if present:
                self._members, self._members_at = Observation(present), loop_seconds()
            elif loop_seconds() > self._members_at + _CHANGE_SECONDS:
                self._members = Observation(self._members.facts, "members come and go")
        except (ApplianceError, TimeoutError) as error:
            self._members = Observation(self._members.facts, str(error) or "the group's coordinator does not answer")
        facts = metadata, topic, claims, positions, gaps, owners, of_lanes, heartbeat, states
        return DestinationFacts(*facts, dict(self._tail.committed_at), copies, self._members)

    async def _copies(self, metadata: Metadata, positions: Mapping[Partition, Position]) -> dict[Partition, CopyLog]:
        """The logs of the copies, by source partition."""
        copies = {each: Partition(self._naming.destination(each.topic), each.number) for each in positions}
        by_leader = grouped((metadata.leader(*copy), each) for each, copy in copies.items())
        logs: dict[Partition, CopyLog] = {}
        for led, answer in await _of_leaders(
            self._cluster,
            by_leader,
            lambda led: copy_logs(self._epochs, metadata, self._naming, {each: positions[each] for each in led}),
        ):
            if isinstance(answer, ApplianceError):
                answer = {each: CopyLog(copies[each], error=answer) for each in led}
            logs |= answer
        return logs
