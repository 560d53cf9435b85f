"""The whole verification: the partitions, shared among a few workers, with a verdict for each."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from appliance.clock import monotonic
from appliance.errors import ApplianceError, SettingsError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.configs import configs
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.link.client.retry import retry_while_busy
from appliance.link.handle import Link
from appliance.link.model.checkpoint import LaneCheckpoint, StartOffsets, start_place
from appliance.link.model.claims import AdoptedPartition
from appliance.link.model.copy_states import CopyState as State
from appliance.link.model.copy_states import effective
from appliance.link.model.link_sql import SqlChange
from appliance.link.model.replicas import Replica
from appliance.link.model.topic_choice import among
from appliance.listing import counted
from appliance.logs.model.span import CopyState
from appliance.logs.reader import WriterFilter, spans
from appliance.verify.checker import Checker
from appliance.verify.model.report import PartitionResult
from appliance.verify.partition import verdict_on
from appliance.verify.partition_sql import PartitionSql, brought_back, sql_of
from appliance.verify.sql import CopiedBySql, Evaluate
from appliance.verify.sql_results import is_doubtful, sql_changes, with_failure, with_letters, without_doubtful
from appliance.verify.work import Job

log = logging.getLogger("appliance.verify")

_PAUSE = 0.2
_LEADERLESS = "the partition has no leader now, at the source or at the destination"


@dataclass(frozen=True, slots=True)
class Plan:
    """The jobs of a verification, and the results that are known without reading anything."""

    jobs: Sequence[Job]
    verdicts: Sequence[PartitionResult]


@dataclass(slots=True)
class Verification:
    """One run over all copied partitions of the settings, or those of some topics: their plan, and its results."""

    link: Link
    _sql_changes: Sequence[SqlChange] = ()
    _lanes: Sequence[LaneCheckpoint] = ()

    async def ended(self, plan: Plan, results: list[PartitionResult], deadline: float) -> list[PartitionResult]:
        """All results in order; of those of jobs, one that a change of the link's SQL meanwhile may explain is none.

        Until the deadline, by ``monotonic``, the link may pass the records on which its SQL fails.
        """
        late = False
        while (results_now := [with_failure(each, self._lanes) for each in results]) != results and not late:
            late = monotonic() > deadline  # the lanes may have been read hours ago: one more look
            await asyncio.sleep(0 if late else _PAUSE)
            if not await self._refresh_again():
                break
        if any(map(is_doubtful, results_now)) and await self._refresh_again():
            results_now = without_doubtful(results_now, self._sql_changes, sql_changes(self._lanes))
        written = WriterFilter(self.link.source, self.link.destination, self.link.naming)
        results = await with_letters(results_now, self._lanes, self.link.destination, written.in_copy)
        return sorted([*plan.verdicts, *results], key=lambda result: (result.topic, result.partition or 0))

    async def plan(self, topics: str = "") -> Plan:
        """Look at both clusters, and say what has to be read of the chosen topics."""
        copies = await retry_while_busy(self.link.copies)
        source, destination, pairs = copies.source, copies.destination, copies.matched
        await self._refresh()
        self._sql_changes = sql_changes(self._lanes)
        names = self._wanted(source, topics)
        verdicts = [self._without(topic.name, CopyState.NO_COPY) for topic in pairs.missing if topic.name in names]
        unfit = {topic: why for topic, why in pairs.unfit.items() if topic in names}
        verdicts += [self._without(topic, CopyState.NOT_COMPARED, why) for topic, why in unfit.items()]
        replicas = [replica for replica in pairs.replicas if replica.source_topic in names]
        for topic, copy in pairs.smaller:
            if topic.name in names:
                replicas += [Replica(topic.name, n, copy.name, topic.id, copy.id) for n in range(len(copy.leaders))]
                verdicts += [_no_partition(topic, copy, n) for n in range(len(copy.leaders), len(topic.leaders))]
        led = [replica for replica in replicas if _led(source, destination, replica)]
        leaderless = [replica for replica in replicas if replica not in led]
        verdicts += [verdict_on(replica, CopyState.NOT_COMPARED, _LEADERLESS) for replica in leaderless]
        verdicts += await self._surplus(
            source, destination, {each.destination_topic: each.source_topic for each in replicas}
        )
        return Plan(await self._jobs(source, destination, led), verdicts)

    async def sql(self, plan: Plan) -> Mapping[Partition, PartitionSql]:
        """The SQL of those partitions of a plan whose records have passed any."""
        replicas = [job.replica for job in plan.jobs]
        if not sql_of(self._sql_changes, replicas, {}):
            return {}
        return sql_of(self._sql_changes, replicas, await brought_back(self.link.source, self.link.naming, replicas))

    def checker(self, sql: Mapping[Partition, PartitionSql], evaluate: Evaluate | None) -> Checker:
        """A checker in this process, of partitions with this SQL."""
        if sql and evaluate is None:
            raise ApplianceError("records were copied by SQL: verify them with `appliance verify`")
        return Checker(self.link, CopiedBySql(sql, evaluate) if evaluate else None)

    def _wanted(self, source: Metadata, topics: str) -> set[str]:
        """The chosen topics, else all except removed ones: their copies are independent topics."""
        copied = {topic.name for topic in self.link.naming.copied(source.topics)}
        if topics:
            chosen_by = f"{self.link.naming.policy.chosen_by} and REPLICA_TOPICS_EXCLUDE_REGEX"
            return set(among(topics, copied, f"no topic of the source that is copied: see {chosen_by}"))
        if not copied:
            raise SettingsError([f"{self.link.naming.choice} matches no topic of the source"])
        states = self._lanes[0].states if self._lanes else {}
        return {name for name in copied if effective(states, name) is not State.REMOVED}

    def _without(self, topic: str, state: CopyState, why: str = "") -> PartitionResult:
        """The result of a whole topic without a copy, or whose copy cannot be one."""
        copy = self.link.naming.destination(topic)
        return PartitionResult(topic, copy, None, state, why or f"the destination has no topic {copy}")

    async def _surplus(
        self, source: Metadata, destination: Metadata, originals: Mapping[str, str]
    ) -> list[PartitionResult]:
        """Partitions with records that only the copy has; in a shared copy they are others'."""
        if self.link.naming.sharing.others_write:
            return []
        further = [
            Partition(copy, number)
            for copy, topic in originals.items()
            for number in range(len(source.topics[topic].leaders), len(destination.topics[copy].leaders))
            if destination.leader(copy, number) >= 0
        ]
        further_spans = await spans(self.link.destination, destination, further)
        return [
            PartitionResult(originals[copy], copy, number, CopyState.DIFFERS, "the source topic has no such partition")
            for (copy, number), span in further_spans.items()
            if span
        ]

    async def _jobs(self, source: Metadata, destination: Metadata, replicas: Collection[Replica]) -> list[Job]:
        # The destination first: its records are all in the source's log when that is queried.
        copies = await spans(self.link.destination, destination, [replica.copy for replica in replicas])
        originals = await spans(self.link.source, source, [replica.source for replica in replicas])
        starts = self._lanes[0].starts if self._lanes else {}
        # A reset may have asked for records before the link's start.
        asked = {replica: self._asked_from(replica, starts) for replica in replicas}
        compacted = await _compacted(self.link.source, {replica.source_topic for replica in replicas})
        compacted |= await _compacted(self.link.destination, {replica.destination_topic for replica in replicas})
        return [
            Job(
                replica,
                originals[replica.source],
                copies[replica.copy],
                not compacted.isdisjoint((replica.source_topic, replica.destination_topic)),
                self._adopted(replica),
                asked_from=asked[replica],
            )
            for replica in replicas
        ]

    async def _refresh_again(self) -> bool:
        """Read the lanes once more; False if they cannot be read: what was compared for hours is told all the same."""
        try:
            await self._refresh()
        except ApplianceError as error:
            log.warning("the lanes cannot be read again", extra={"fields": {"cause": str(error)}})
            return False
        return True

    async def _refresh(self) -> None:
        self._lanes = await retry_while_busy(self.link.lanes.checkpoints)

    def _asked_from(self, replica: Replica, starts: Mapping[str, StartOffsets]) -> int:
        place = start_place(*replica.source, replica.source_id, starts)
        positions = [each.positions[replica.source] for each in self._lanes if replica.source in each.positions]
        known = [position.next_offset for position in positions if position.source_id == replica.source_id]
        return min([place.offset, *known]) if place else 0

    def _adopted(self, replica: Replica) -> AdoptedPartition | None:
        claim = self.link.registry.ledger.claims.get((replica.destination_topic, replica.destination_id))
        ours = claim.adopted if claim and claim.link == self.link.naming.replicator else ()
        return next((each for each in ours if each.partition == replica.partition), None)


def _no_partition(topic: Topic, copy: Topic, partition: int) -> PartitionResult:
    why = f"destination topic {copy.name} has {counted(len(copy.leaders), 'partition')}"
    return PartitionResult(topic.name, copy.name, partition, CopyState.NO_COPY, why)


def _led(source: Metadata, destination: Metadata, replica: Replica) -> bool:
    return source.leader(*replica.source) >= 0 and destination.leader(*replica.copy) >= 0


async def _compacted(cluster: KafkaCluster, topics: Collection[str]) -> set[str]:
    """The topics that are set to be compacted."""
    described = await configs(cluster, topics) if topics else {}
    return {topic for topic, values in described.items() if "compact" in values.get("cleanup.policy", "")}
