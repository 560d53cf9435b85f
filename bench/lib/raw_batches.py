"""The protocol without a copier: read a topic's committed batches, and write batches without a transaction.

The appliance's own Fetch reads over one connection for each partition, so that the broker serves all of them at once.
The batches are written unchanged, in prepared requests of one batch for each partition, with several requests in
flight.
"""

import asyncio
import collections
import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.produce.v9 import ProduceResponse

from appliance.errors import ProcessFailed
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.fetch import FetchLimits, WantedPartition, fetch
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.client.produce import API_KEY, VERSION, check_produced
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.flexible import NO_TAGS, array_size, head, text
from appliance.kafka.protocol.metadata import Metadata
from appliance.kafka.protocol.wire import SIZE, decode
from appliance.kafka.records.batch import CODEC_MASK, CONTROL, HEADER, Batch, Header, split, stamp_crc
from testbed.tasks import together

_FETCH_BYTES = 4 << 20
_WAIT = 1.0
_IN_FLIGHT = 5
_WRITERS = 4

_NULL = b"\x00"
_ALL_IN_SYNC_REPLICAS = -1
_TIMEOUT_MILLISECONDS = 30_000
_FIXED = struct.Struct(">hi")
_INDEX = struct.Struct(">i")
_NOBODY = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}

Take = Callable[[int, Sequence[Batch]], None]
"""A callback with a partition's number and its next batches."""


async def read(cluster: KafkaCluster, topic: str, take: Take) -> None:
    """Read all of the topic's batches up to its current end, including aborted ones and markers, without decoding."""
    known = await _known(cluster, topic)
    partitions = known.topics[topic].partitions
    starts = await list_offsets(cluster, known, partitions, Bound.START)
    ends = await list_offsets(cluster, known, partitions, Bound.STABLE_END)
    reading = {}
    for partition in partitions:
        connection = await cluster.broker(known.leader(*partition), f"read {partition.number}")
        first = WantedPartition(partition, known.topics[topic].id, starts[partition], _FETCH_BYTES)
        reading[f"read {partition.number}"] = _read_to(connection, first, ends[partition], take)
    await together(**reading)


async def _read_to(connection: BrokerConnection, wanted: WantedPartition, end: int, take: Take) -> None:
    limits = FetchLimits(_FETCH_BYTES, _WAIT)
    while wanted.position < end:
        (fetched,) = await fetch(connection, [wanted], limits)
        check(fetched.error, f"fetch {wanted.partition}")
        batches = list(split(fetched.records))
        if batches:
            take(wanted.partition.number, batches)
            wanted = wanted._replace(position=batches[-1].header.last_offset + 1)


class Shape(NamedTuple):
    """The numbers of a topic's records, offsets and batches, without transaction markers."""

    records: int
    offsets: int
    batches: int


async def shape(cluster: KafkaCluster, topic: str) -> Shape:
    """The topic's size by the headers of its batches, including aborted records; raises as ``read``."""
    headers: list[Header] = []

    def take(_: int, batches: Sequence[Batch]) -> None:
        headers.extend(batch.header for batch in batches if not batch.header.attributes & CONTROL)

    await read(cluster, topic, take)
    offsets = sum(header.last_offset_delta + 1 for header in headers)
    return Shape(sum(header.records for header in headers), offsets, len(headers))


def without_producer(batch: Batch) -> bytes:
    """The same records in a batch without a producer id."""
    header = batch.header
    data = bytearray(batch.data)
    raw = header._replace(base_offset=0, leader_epoch=-1, attributes=header.attributes & CODEC_MASK, **_NOBODY)
    HEADER.pack_into(data, 0, *Header._make(raw))
    stamp_crc(data)
    return bytes(data)


async def write(cluster: KafkaCluster, topic: str, batches: Mapping[int, Sequence[bytes]]) -> None:
    """Write the batches of each partition, and return when the broker, which leads them all, has taken them."""
    known = await _known(cluster, topic)
    writing = {}
    for first in range(min(_WRITERS, len(batches))):
        leader = await cluster.broker(known.leader(topic, 0), f"write {first}")
        share = {number: batches[number] for number in sorted(batches)[first::_WRITERS]}
        writing[f"write {first}"] = _write_through(leader, topic, share)
    await together(**writing)


async def _write_through(leader: BrokerConnection, topic: str, batches: Mapping[int, Sequence[bytes]]) -> None:
    waiting: collections.deque[asyncio.Future[ProduceResponse]] = collections.deque()
    for turn in itertools.zip_longest(*batches.values()):
        given = [(number, data) for number, data in zip(batches, turn, strict=True) if data is not None]
        waiting.append(await leader.send(RawProduce(topic, given)))
        if len(waiting) == _IN_FLIGHT:
            check_produced(await waiting.popleft())
    for answer in waiting:
        check_produced(await answer)


@dataclass(frozen=True, slots=True)
class RawProduce:
    """A Produce of one batch for each given partition of a topic, without a producer id."""

    topic: str
    batches: Sequence[tuple[int, bytes]]
    name: str = "ProduceRequest"

    def frame(self, correlation: int, client_id: str) -> bytes:
        """The request's frame, size first."""
        pieces = [head(API_KEY, VERSION, correlation, client_id), _NULL]
        pieces += [_FIXED.pack(_ALL_IN_SYNC_REPLICAS, _TIMEOUT_MILLISECONDS)]
        pieces += [array_size(1), text(self.topic), array_size(len(self.batches))]
        for number, data in self.batches:
            pieces += [_INDEX.pack(number), array_size(len(data)), data, NO_TAGS]
        pieces += [NO_TAGS, NO_TAGS]
        return b"".join([SIZE.pack(sum(map(len, pieces))), *pieces])

    def answer(self, frame: bytearray, correlation: int) -> ProduceResponse:
        """The response, for ``check_produced``."""
        return decode(ProduceResponse, frame, correlation)


async def _known(cluster: KafkaCluster, topic: str) -> Metadata:
    known = await cluster.metadata([topic])
    if topic not in known.topics:
        raise ProcessFailed(f"there is no topic {topic}")
    return known
