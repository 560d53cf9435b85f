"""Fetch (KIP-74, KIP-98) of committed data: what is asked, and what comes back of each partition."""

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.fetch.v12.response import PartitionData
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from appliance.kafka.committed import Aborted
from appliance.kafka.offsets import Partition

_READ_COMMITTED = i8(1)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How much one Fetch may bring, in bytes, and how long it waits at the broker for the first byte, in seconds."""

    partition_bytes: int
    response_bytes: int
    wait: float


@dataclass(frozen=True, slots=True)
class Fetched:
    """One partition's share of a Fetch response; ``stable_end`` is its last stable offset."""

    partition: Partition
    error: ErrorCode
    records: bytes
    aborted: tuple[Aborted, ...]
    log_start: int
    stable_end: int


def request(positions: Iterable[tuple[Partition, int]], limits: FetchLimits) -> FetchRequest:
    """A Fetch of each partition from its position on; what comes first is served first when the response is full."""
    by_topic: dict[str, list[FetchPartition]] = {}
    for (topic, partition), position in positions:
        by_topic.setdefault(topic, []).append(
            FetchPartition(
                partition=i32(partition),
                fetch_offset=i64(position),
                partition_max_bytes=i32(limits.partition_bytes),
            )
        )
    return FetchRequest(
        replica_id=BrokerId(-1),
        max_wait=i32Timedelta.parse(datetime.timedelta(milliseconds=int(limits.wait * 1000))),
        min_bytes=i32(1),
        max_bytes=i32(limits.response_bytes),
        isolation_level=_READ_COMMITTED,
        topics=tuple(FetchTopic(topic=TopicName(name), partitions=tuple(p)) for name, p in by_topic.items()),
        forgotten_topics_data=(),
    )


def fetched(response: FetchResponse) -> Iterator[Fetched]:
    """The partitions of a response."""
    for topic in response.responses:
        for data in topic.partitions:
            yield _fetched(str(topic.topic), data)


def _fetched(topic: str, data: PartitionData) -> Fetched:
    return Fetched(
        partition=(topic, int(data.partition_index)),
        error=data.error_code,
        records=data.records or b"",
        aborted=tuple(Aborted(int(a.producer_id), int(a.first_offset)) for a in data.aborted_transactions or ()),
        log_start=int(data.log_start_offset),
        stable_end=int(data.last_stable_offset),
    )
