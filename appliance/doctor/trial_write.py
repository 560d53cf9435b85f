"""A record in a topic of the doctor's own, written like the link's, and read back; the topic is removed again."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from appliance.clock import now_ms
from appliance.doctor.step import Finding, failed, passed, warning
from appliance.errors import BrokerBusy, BrokerRefused, PartitionsUnavailable, raise_first
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.configs import LEAST_IN_SYNC, write_limits
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.fetch import FetchLimits, fetch_partition
from appliance.kafka.client.produce import append
from appliance.kafka.client.topics import NewTopic, delete_topics, require_led
from appliance.kafka.client.transactions import Producer, init_producer_id
from appliance.kafka.protocol.metadata import NOWHERE, Metadata, Partition
from appliance.link.client.retry import retry_while_busy
from appliance.link.client.writer import Writer
from appliance.link.model.naming import Naming
from appliance.link.model.producers import encode_producer
from appliance.listing import some
from appliance.settings.values import Settings

_PAUSE_MAX = 0.1
_REQUEST_SECONDS = 15.0
_COMMITTED = FetchLimits(64 * 1024, wait=1.0)
_TOO_FEW = "NOT_ENOUGH_REPLICAS"
_THERE = "TOPIC_ALREADY_EXISTS"

T = TypeVar("T")


class TrialWrite:
    """The doctor's producer at the destination; its transactional id fences other doctors only."""

    def __init__(self, settings: Settings, cluster: KafkaCluster) -> None:
        self._naming = Naming.of(settings)
        self._key = settings.destination.login or "DESTINATION_API_KEY"
        self._timeout = settings.engine.transaction_timeout
        self._cluster = cluster
        self._topic = self._naming.doctors_topic
        self._producer: Producer | None = None

    async def examine(self, replicas: int, in_sync: str, like: Sequence[str]) -> Finding:
        """Write to a topic of so many replicas, and this min.insync.replicas if any, ``like`` those of the link."""
        new = NewTopic(self._topic, 1, replicas, {LEAST_IN_SYNC: in_sync} if in_sync else {})
        try:
            await retry_while_busy(partial(self._make, new), longest_pause=1.0)
            try:
                return await self._write(like)
            finally:
                await self._remove()
        except (BrokerRefused, PartitionsUnavailable) as error:
            is_there = isinstance(error, BrokerRefused) and error.code == _THERE
            if isinstance(error, BrokerBusy) and not is_there:
                raise
            rights = f"CREATE, DESCRIBE, READ, WRITE, DESCRIBE_CONFIGS and DELETE on {self._topic}"
            remedy = f"permit {self._key} {rights}, and topics to be deleted"
            delete = f"if no other doctor runs: kafka-topics.sh --delete --topic {self._topic}"
            return warning(f"whether records are acknowledged is not known: {error}", delete if is_there else remedy)

    async def _remove(self) -> None:
        topic = (await self._cluster.metadata([self._topic])).topics.get(self._topic)
        await delete_topics(self._cluster, {self._topic: topic.id if topic else NOWHERE})

    async def _make(self, new: NewTopic) -> None:
        """Make it, once its predecessor, or that of another doctor, is gone: only what we made is ours to delete."""
        creation = await ConfigFilter(self._cluster).make([new])
        raise_first(creation.failures.values())
        if creation.there:
            raise BrokerBusy(f"topic {new.name} is there, of a doctor that runs or was killed", _THERE)

    async def _write(self, like: Sequence[str]) -> Finding:
        name, partition = self._topic, Partition(self._topic, 0)
        metadata = await retry_while_busy(partial(require_led, self._cluster, {name: 1}))
        producer = await self.producer()
        records = [encode_producer(metadata.cluster_id, producer, self._naming, now_ms())]
        try:  # without a transaction: none can end in a topic with too few replicas
            await append(self._cluster, metadata, partition, records)
        except PartitionsUnavailable as error:
            if _TOO_FEW not in str(error):
                raise
            limits, _ = await write_limits(self._cluster, [name])
            least, replicas = limits[name].in_sync, metadata.topics[name].replicas[0]
            what = f"{some(like) or name}: {LEAST_IN_SYNC}={least}, replicas: {replicas}"
            remedy = f"set {LEAST_IN_SYNC}={replicas} for the destination's brokers, and for topics that have their own"
            other = f"or REPLICATION_FACTOR={least}, with as many brokers, before the topics are made"
            return failed(f"{what}: {_TOO_FEW}, nothing can be written", f"{remedy}; {other}")
        writer = Writer(self._cluster, producer, partition, metadata, _REQUEST_SECONDS)
        await writer.write([], lambda *_: {partition: records})
        await self.producer(anew=True)  # once the marker is written
        producer_id = await retry_while_busy(partial(self._read_back, metadata, len(records)))
        if producer_id == producer.id or not self._naming.sharing.others_write:
            return passed(f"a record was committed as {producer.transactional_id}, acknowledged, and read back")
        what = f"a batch with producer id {producer.id} was stored with {producer_id}"
        return failed(what, f"share no copies in this cluster: {self._naming.policy.variable}, REPLICA_FAN_IN")

    async def _read_back(self, metadata: Metadata, offset: int) -> int:
        """The producer id of the batch at an offset; its leader shows it once it knows that it is replicated."""
        fetched = await fetch_partition(
            self._cluster, metadata, Partition(self._topic, 0), offset, "doctor", _COMMITTED
        )
        for each in fetched.batches():
            return each.header.producer_id
        raise BrokerBusy(f"{self._topic}-0: the record at offset {offset} is committed and not shown", "NOT_SHOWN")

    async def producer(self, anew: bool = False) -> Producer:
        """The doctor's producer; one that is taken ``anew`` has no open transaction."""
        name = self._naming.doctors_id
        if self._producer is None or anew:
            self._producer = await self.at_coordinator(lambda at: init_producer_id(at, name, self._timeout))
        return self._producer

    async def at_coordinator(self, ask: Callable[[BrokerConnection], Awaitable[T]]) -> T:
        """The answer of the transaction coordinator, which is asked again while it is not ready."""
        name = self._naming.doctors_id

        async def attempt() -> T:
            self._cluster.forget_coordinator(name)
            return await ask(await self._cluster.coordinator(name))

        return await retry_while_busy(attempt, longest_pause=_PAUSE_MAX)
