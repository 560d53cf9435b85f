"""What a cluster says of itself: brokers, topics, leaders; as frozen values."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.request import MetadataRequestTopic
from kio.schema.metadata.v11.response import MetadataResponseTopic
from kio.schema.types import TopicName

from appliance.kafka.wire import SIZE, Typed, check_correlation
from appliance.settings.target import Target, normal_host

NOWHERE = uuid.UUID(int=0)
"""The topic id of a broker that has none."""

NOBODY = -1
"""The leader of a partition that has none now."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists; ``leaders`` holds node ids by partition, ``NOBODY`` where there is none now.

    ``error`` is ``none``, or why the cluster won't tell more, for example missing authorisation.
    """

    name: str
    id: uuid.UUID
    internal: bool
    leaders: tuple[int, ...]
    error: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True)
class Metadata:
    """One answer to a Metadata request."""

    cluster_id: str
    controller: int
    brokers: Mapping[int, Target]
    topics: Mapping[str, Topic]

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition; ``NOBODY`` when nobody is known to."""
        known = self.topics.get(topic)
        if known is None or not 0 <= partition < len(known.leaders):
            return NOBODY
        return known.leaders[partition]


def request(topics: Sequence[str] | None) -> MetadataRequest:
    """A request for the named topics, for none when empty, for all when None."""
    named = None if topics is None else tuple(MetadataRequestTopic(topic_id=None, name=TopicName(t)) for t in topics)
    return MetadataRequest(topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=False)


@dataclass(slots=True)
class Everything:
    """What a cluster said the last time when it was asked about all topics.

    An answer whose bytes are those of the one before is not read anew, and is the same object: of thousands of
    topics that have not changed, a look costs next to nothing.
    """

    bytes: bytes = b""
    metadata: Metadata = field(default_factory=lambda: Metadata("", NOBODY, {}, {}))


@dataclass(frozen=True, slots=True)
class Repeated:
    """A Metadata exchange about all topics, to be asked again and again."""

    known: Everything
    exchange: Typed[MetadataResponse]
    name: str = "MetadataRequest"

    def frame(self, correlation: int, client_id: str) -> bytes:
        """As ``appliance.kafka.wire.Exchange``."""
        return self.exchange.frame(correlation, client_id)

    def answer(self, frame: bytearray, correlation: int) -> Metadata:
        """As ``appliance.kafka.wire.Exchange``."""
        check_correlation(frame, correlation)
        rest = memoryview(frame)[SIZE.size :]
        if rest != self.known.bytes:
            self.known.metadata = parse(self.exchange.answer(frame, correlation))
            self.known.bytes = bytes(rest)
        return self.known.metadata


def parse(response: MetadataResponse) -> Metadata:
    """The response as our values; topics that do not exist are left out."""
    topics = (_topic(topic) for topic in response.topics)
    return Metadata(
        cluster_id=response.cluster_id or "",
        controller=int(response.controller_id),
        brokers={int(b.node_id): Target(normal_host(b.host), int(b.port)) for b in response.brokers},
        topics={topic.name: topic for topic in topics if topic.error is not ErrorCode.unknown_topic_or_partition},
    )


def _topic(topic: MetadataResponseTopic) -> Topic:
    leaders = {int(partition.partition_index): int(partition.leader_id) for partition in topic.partitions}
    return Topic(
        name=str(topic.name),
        id=topic.topic_id or NOWHERE,
        internal=topic.is_internal,
        leaders=tuple(leaders.get(index, NOBODY) for index in range(len(leaders))),
        error=topic.error_code,
    )
