"""Metadata of a cluster, as frozen values: brokers, topics, leaders."""

import datetime
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.request import MetadataRequestTopic
from kio.schema.metadata.v11.response import MetadataResponseTopic
from kio.schema.types import TopicName

from appliance.kafka.protocol.wire import SIZE, TypedExchange, check_correlation
from appliance.settings.target import Target, normal_host
from appliance.settings.topics import TOPIC_NAME_MAX


class Partition(NamedTuple):
    """One partition of a topic; it prints itself as in Kafka's own logs, like ``orders-0``."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


NOWHERE = uuid.UUID(int=0)
"""The topic id of a broker that has none."""

NOBODY = -1
"""The leader's node id of a partition without a leader."""

UNKNOWN_EPOCH = -1
"""The leader epoch (KIP-320) of a broker that does not return it; a request that carries it is not checked."""


@dataclass(frozen=True, slots=True)
class Topic:
    """An existing topic; ``leaders`` holds node ids by partition, ``NOBODY`` if there is none now.

    ``epochs`` holds the leader epochs by partition: the highest belongs to the newest known leader. ``replicas`` counts
    by partition all replicas, and ``in_sync`` those in sync. ``error`` is ``none``, or the reason that the cluster
    returns no more, for example missing authorisation.
    """

    name: str
    id: uuid.UUID
    internal: bool
    leaders: tuple[int, ...]
    error: ErrorCode = ErrorCode.none
    epochs: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()

    @property
    def partitions(self) -> list[Partition]:
        """All its partitions."""
        return [Partition(self.name, number) for number in range(len(self.leaders))]

    def lacks_replicas(self, partition: int, minimum: int) -> bool:
        """True when a partition is known to have fewer replicas in sync than ``minimum``, or than all."""
        if not 0 <= partition < len(self.in_sync):
            return False
        return self.in_sync[partition] < min(minimum, self.replicas[partition])


@dataclass(frozen=True, slots=True)
class Metadata:
    """One answer to a Metadata request."""

    cluster_id: str
    controller: int
    brokers: Mapping[int, Target]
    topics: Mapping[str, Topic]
    throttle_time: datetime.timedelta = datetime.timedelta()

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition; ``NOBODY`` if unknown."""
        entry = self.topics.get(topic)
        if entry is None or not 0 <= partition < len(entry.leaders):
            return NOBODY
        return entry.leaders[partition]

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The epoch of that leader; ``UNKNOWN_EPOCH`` if unknown."""
        entry = self.topics.get(topic)
        if entry is None or not 0 <= partition < len(entry.epochs):
            return UNKNOWN_EPOCH
        return entry.epochs[partition]


def is_another(one: uuid.UUID, other: uuid.UUID) -> bool:
    """True for the ids of two topics; a topic without an id gets one when its cluster is upgraded."""
    return one != other and NOWHERE not in (one, other)


def request(topics: Sequence[str] | None) -> MetadataRequest:
    """A request for the named topics, for none when empty, for all when None.

    Names that are longer than a topic's are left out: a broker closes the connection at one of 32,768 bytes.
    """
    names = None if topics is None else [TopicName(topic) for topic in topics if len(topic) <= TOPIC_NAME_MAX]
    named = None if names is None else tuple(MetadataRequestTopic(topic_id=None, name=name) for name in names)
    return MetadataRequest(topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=False)


@dataclass(slots=True)
class Everything:
    """The cluster's newest answer to a question about all topics.

    An answer with the same bytes as the one before is not parsed again, and is the same object: a look at thousands of
    unchanged topics costs next to nothing.
    """

    bytes: bytes = b""
    metadata: Metadata = field(default_factory=lambda: Metadata("", NOBODY, {}, {}))


@dataclass(frozen=True, slots=True)
class EverythingExchange:
    """A Metadata exchange about all topics, for repeated use."""

    known: Everything
    exchange: TypedExchange[MetadataResponse]
    name: str = "MetadataRequest"

    def frame(self, correlation: int, client_id: str) -> bytes:
        """See ``appliance.kafka.protocol.wire.Exchange``."""
        return self.exchange.frame(correlation, client_id)

    def answer(self, frame: bytearray, correlation: int) -> Metadata:
        """See ``appliance.kafka.protocol.wire.Exchange``."""
        check_correlation(frame, correlation)
        rest = memoryview(frame)[SIZE.size :]
        if rest != self.known.bytes:
            self.known.metadata = parse(self.exchange.answer(frame, correlation))
            self.known.bytes = bytes(rest)
        return self.known.metadata


_MISSING = (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception)
"""The codes of a topic that does not exist; the second is that of a name that no topic can have."""


def parse(response: MetadataResponse) -> Metadata:
    """The response as our values; topics that do not exist are left out."""
    topics = (_topic(topic) for topic in response.topics)
    return Metadata(
        cluster_id=response.cluster_id or "",
        controller=int(response.controller_id),
        brokers={int(b.node_id): Target(normal_host(b.host), int(b.port)) for b in response.brokers},
        topics={topic.name: topic for topic in topics if topic.error not in _MISSING},
        throttle_time=response.throttle_time,
    )


def _topic(topic: MetadataResponseTopic) -> Topic:
    partitions = {
        int(p.partition_index): (int(p.leader_id), int(p.leader_epoch), len(p.isr_nodes), len(p.replica_nodes))
        for p in topic.partitions
    }
    by_partition = [partitions.get(index, (NOBODY, UNKNOWN_EPOCH, 0, 0)) for index in range(len(partitions))]
    return Topic(
        name=str(topic.name),
        id=topic.topic_id or NOWHERE,
        internal=topic.is_internal,
        leaders=tuple(leader for leader, *_ in by_partition),
        error=topic.error_code,
        epochs=tuple(epoch for _, epoch, *_ in by_partition),
        in_sync=tuple(in_sync for *_, in_sync, _ in by_partition),
        replicas=tuple(replicas for *_, replicas in by_partition),
    )
