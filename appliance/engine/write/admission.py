"""The reading of the facts on which partitions are admitted to a lane."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from appliance.clock import now_ms
from appliance.engine.model.admission import Begins, Facts, identity_fault, is_known, unwritable
from appliance.engine.write.copies import NEVER_WRITTEN, OTHERS_ONLY, CopyExaminer, SearchEnds
from appliance.engine.write.lane import Lane
from appliance.errors import ApplianceError, BrokerBusy
from appliance.kafka.client.configs import write_limits
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.client.transactions import Producer
from appliance.kafka.protocol.metadata import NOWHERE, Metadata, Partition, is_another
from appliance.link.client.origins import Origins
from appliance.link.client.registry import Registry
from appliance.link.client.source_places import try_places
from appliance.link.model.checkpoint import StartOffsets, start_place
from appliance.link.model.position import CopyEnd, Position, SourcePlace
from appliance.link.model.replicas import Replica


@dataclass(frozen=True, slots=True)
class FactReader:
    """The questions of an admission, and their inputs. The questions change nothing: they may be cut off.

    ``starts`` are those of REPLICA_TOPICS_START; with ``records_gaps`` no gap stops a partition.
    """

    source: Cluster
    lane: Lane
    starts: Mapping[str, StartOffsets]
    records_gaps: bool
    search_ends: SearchEnds

    async def read(self, replicas: Collection[Replica], metadata: Metadata, producer: Producer) -> Facts:
        """The facts of these partitions, by metadata of the destination and for the lane's newest epoch."""
        remembered = self.lane.checkpoint.positions
        positions = {each.source: remembered[each.source] for each in replicas if each.source in remembered}
        limits, unlimited = await write_limits(self.lane.cluster, {replica.destination_topic for replica in replicas})
        shared = self.lane.naming.sharing.others_write
        facts = Facts(metadata, producer, positions, limits, unlimited, shared)
        fit = [replica for replica in replicas if not unwritable(replica, facts)]
        new = [replica for replica in fit if not is_known(positions.get(replica.source))]
        ends = self._remembered_ends(fit, positions)
        begun, former_ids = frozenset[Partition](), frozenset[int]()
        if shared and new:
            former_ids = await self._former_ids(producer)
            begun = await self._begun(new)
            ends |= dict.fromkeys([replica.copy for replica in new], OTHERS_ONLY) if former_ids else {}
        examiner = CopyExaminer(self.lane.cluster, metadata, producer.id, self.search_ends, shared, former_ids)
        copies = await examiner.examine(ends)
        begins = await self._begins(fit, positions)
        return replace(facts, begun=begun, copies=copies, begins=begins, now=now_ms())

    def _remembered_ends(
        self, replicas: Iterable[Replica], positions: Mapping[Partition, Position]
    ) -> dict[Partition, CopyEnd | None]:
        """The remembered ends of copies, without those that this epoch of the lane has written to."""
        ends: dict[Partition, CopyEnd | None] = {}
        for replica in replicas:
            position = positions.get(replica.source)
            if not is_known(position):
                ends[replica.copy] = None
            elif position.destination_id not in (replica.destination_id, NOWHERE):
                ends[replica.copy] = NEVER_WRITTEN
            elif not self.lane.knows_end(replica.copy):
                ends[replica.copy] = position.copy_end
        return ends

    async def _former_ids(self, producer: Producer) -> frozenset[int]:
        """The producer ids under which this link may have written to a copy before; none if the lane is in its first
        epoch: only a lane writes the copies of its partitions.
        """
        origins = Origins(self.lane.cluster)
        await origins.refresh()
        lane = [each.producer_id for each in origins.producers.of(producer.transactional_id)]
        if producer.epoch == 0 and lane == [producer.id]:
            return frozenset()
        return frozenset(origins.producers.of_link(self.lane.naming.replicator))

    async def _begun(self, replicas: Iterable[Replica]) -> frozenset[Partition]:
        """The copies that this link may have written to before."""
        registry = Registry(self.lane.cluster, self.lane.naming.replicator)
        await registry.refresh()
        topics = {(replica.destination_topic, replica.destination_id) for replica in replicas}
        begun = {topic for topic in topics if registry.ledger.has_begun(topic)}
        return frozenset(each.copy for each in replicas if (each.destination_topic, each.destination_id) in begun)

    async def _begins(self, replicas: Iterable[Replica], positions: Mapping[Partition, Position]) -> Begins:
        """The places where copying of new partitions begins, and where others continue after a gap."""
        places: dict[Partition, SourcePlace] = {}
        new: dict[Partition, Replica] = {}
        for replica in replicas:
            position = positions.get(replica.source)
            if is_known(position) and not (self.records_gaps and identity_fault(replica, position)):
                continue
            place = start_place(*replica.source, replica.source_id, self.starts)
            if place is None:
                new[replica.source] = replica
            else:
                places[replica.source] = place
        if not new:
            return Begins(places)
        metadata = await self.source.metadata(sorted({topic for topic, _ in new}))
        recreated: dict[Partition, ApplianceError] = {
            partition: BrokerBusy(f"{replica.source_topic} was deleted and made anew", "UNKNOWN_TOPIC_ID")
            for partition, replica in new.items()
            if (topic := metadata.topics.get(replica.source_topic)) and is_another(topic.id, replica.source_id)
        }
        offsets, failures = await try_offsets(self.source, metadata, sorted(new.keys() - recreated), Bound.START)
        starts, unknown = await try_places(self.source, metadata, offsets)
        return Begins(places | starts, {**failures, **unknown, **recreated})
