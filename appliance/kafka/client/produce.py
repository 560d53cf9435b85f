"""Produce (KIP-98) of stamped batches: the requests, and the check of their answers.

Versions 7 to 9 are written here and not by kio: a batch is copied once, from the fetched frame to the sent one, and
stamped there. All three have the same content; from 9 on a request is flexible (KIP-482).
"""

import asyncio
import struct
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.produce.v9 import ProduceRequest, ProduceResponse
from kio.schema.produce.v9.request import PartitionProduceData, TopicProduceData
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32

from appliance.errors import ApplianceError, BrokerRefused, CopyRefused, PartitionsUnavailable, PeerError, raise_first
from appliance.grouping import grouped, pieces
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.client.transactions import Producer, milliseconds
from appliance.kafka.protocol import versions
from appliance.kafka.protocol.answer import OF_THE_RECORDS, failure
from appliance.kafka.protocol.flexible import FLEXIBLE, PLAIN, Form, head
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.kafka.protocol.older import decode_older
from appliance.kafka.protocol.wire import SIZE, decode
from appliance.kafka.records.batch import restamp, stamp_crc
from appliance.kafka.records.records import Record, pack
from appliance.kafka.records.varint import Buffer

API_KEY = 0
VERSION = 9
_FLEXIBLE_FROM = 9

_ALL_IN_SYNC_REPLICAS = -1
_SOONER = 0.8
"""A live broker gives up waiting for its replicas, and answers, before it counts as dead."""

_FIXED = struct.Struct(">hi")
_INDEX = struct.Struct(">i")

_OF_THE_EPOCH = frozenset(
    {
        "CONCURRENT_TRANSACTIONS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "DUPLICATE_SEQUENCE_NUMBER",
        "FENCED_LEADER_EPOCH",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "LEADER_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NOT_LEADER_OR_FOLLOWER",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "TRANSACTION_ABORTABLE",
        "TRANSACTION_COORDINATOR_FENCED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_PRODUCER_ID",
    }
)
"""Refusals that a new epoch may resolve: they concern the producer's state, or a leader that has moved. Any other
concerns the batch or its partition, and may last: other partitions must not wait for it."""


_CHANGES_TIMES = "has message.timestamp.type=LogAppendTime, which changes the times of records: set CreateTime there"


class Copy(NamedTuple):
    """A batch for a partition, and the sequence number that its first record gets; ``data`` stays as it is."""

    partition: Partition
    data: Buffer
    sequence: int


async def produce(
    leader: Connection, producer: Producer, copies: Collection[Copy]
) -> "asyncio.Future[ProduceResponse]":
    """Send one batch for each partition, in order after this connection's earlier requests.

    Pass the answer to ``check_produced``.
    """
    version = versions.version(leader.offered, ProduceRequest)
    return await leader.send(ProduceExchange(producer, copies, _SOONER * leader.timeouts.answer, version))


@dataclass(frozen=True, slots=True)
class ProduceExchange:
    """One batch for each partition; ``timeout`` in seconds is how long the broker waits for the in-sync replicas."""

    producer: Producer
    copies: Collection[Copy]
    timeout: float
    version: int = VERSION
    name: str = "ProduceRequest"

    def frame(self, correlation: int, client_id: str) -> bytearray:
        """The request's frame, size first."""
        form = self._form
        begins = head(API_KEY, self.version, correlation, client_id, form.no_tags)
        begins += form.text(self.producer.transactional_id)
        pieces = _Pieces()
        pieces.add(SIZE.pack(0) + begins + _FIXED.pack(_ALL_IN_SYNC_REPLICAS, int(self.timeout * 1000)))
        places = list(self._add_topics(pieces))
        pieces.add(form.no_tags)
        frame = bytearray().join(pieces.pieces)
        SIZE.pack_into(frame, 0, len(frame) - SIZE.size)
        with memoryview(frame) as view:
            for place, copy in places:
                restamp(view[place : place + len(copy.data)], self.producer.id, self.producer.epoch, copy.sequence)
        return frame

    def _add_topics(self, pieces: "_Pieces") -> Iterator[tuple[int, Copy]]:
        """Add the copies, and return where each begins."""
        array_size, text, no_tags = self._form
        by_topic = grouped((copy.partition.topic, copy) for copy in self.copies)
        pieces.add(array_size(len(by_topic)))
        for topic, copies in by_topic.items():
            pieces.add(text(topic) + array_size(len(copies)))
            for copy in copies:
                pieces.add(_INDEX.pack(copy.partition.number) + array_size(len(copy.data)))
                yield pieces.size, copy
                pieces.add(copy.data)
                pieces.add(no_tags)
            pieces.add(no_tags)

    @property
    def _form(self) -> Form:
        return FLEXIBLE if self.version >= _FLEXIBLE_FROM else PLAIN

    def answer(self, frame: bytearray, correlation: int) -> ProduceResponse:
        """The response, for ``check_produced``."""
        partitions = {copy.partition for copy in self.copies}
        if self.version == VERSION:
            return _complete(decode(ProduceResponse, frame, correlation), partitions)
        return _complete(decode_older(ProduceResponse, self.version, frame, correlation), partitions)


@dataclass(slots=True)
class _Pieces:
    """The pieces of a frame, in order, and its size so far."""

    pieces: list[Buffer] = field(default_factory=list)
    size: int = 0

    def add(self, piece: Buffer) -> None:
        self.pieces.append(piece)
        self.size += len(piece)


def _complete(response: ProduceResponse, partitions: Set[Partition]) -> ProduceResponse:
    """The response, with an answer for each of these partitions; a batch without one may not have been taken."""
    answered = {Partition(topic.name, each.index) for topic in response.responses for each in topic.partition_responses}
    for partition in sorted(partitions - answered):
        raise PeerError(f"the broker's answer to a Produce leaves out {partition}")
    return response


def check_produced(response: ProduceResponse, *, keeps_times: bool = False) -> dict[Partition, int]:
    """The offset of each partition's batch, when every one of them was taken; with ``keeps_times`` as it is.

    Raises:
        CopyRefused: the first partition that will never take its batch, or has given it the broker's time.
        Fenced, BrokerBusy: the first refusal for a reason that is not the partition's own.
        PartitionsUnavailable: some cannot take anything now.
    """
    offsets: dict[Partition, int] = {}
    unavailable: dict[Partition, ApplianceError] = {}
    for topic in response.responses:
        for answer in topic.partition_responses:
            partition = Partition(str(topic.name), int(answer.index))
            if answer.error_code is ErrorCode.none:
                offsets[partition] = int(answer.base_offset)
                if keeps_times and answer.log_append_time is not None:
                    raise CopyRefused(f"{topic.name} {_CHANGES_TIMES}", "LOG_APPEND_TIME", partition, 0)
                continue
            detail = f" ({answer.error_message})" if answer.error_message else ""
            error = failure(answer.error_code, f"produce to {partition}{detail}")
            if not isinstance(error, BrokerRefused) or error.code in _OF_THE_EPOCH:
                raise error
            if error.code in OF_THE_RECORDS:
                number = next((int(each.batch_index) for each in answer.record_errors if each.batch_index >= 0), None)
                raise CopyRefused(str(error), error.code, partition, number)
            unavailable[partition] = error
    if unavailable:
        raise PartitionsUnavailable(unavailable)
    return offsets


_APPENDED_AT_ONCE, _RECORD_OVERHEAD = 500_000, 500
"""Bytes of a batch without a transaction, half of what topics take by default; a record counts some beside its own."""
_APPEND_SECONDS = 10.0


async def append(cluster: Cluster, metadata: Metadata, partition: Partition, records: Sequence[Record]) -> None:
    """Append records without a transaction; on return all in-sync replicas have them.

    For logs that others read uncommitted, and in which duplicates are harmless. What is refused keeps nothing else out.

    Raises:
        PartitionsUnavailable, BrokerBusy, BrokerRefused, PeerError, Unreachable: some may not have been appended.
    """
    leader, refused = await cluster.broker(metadata.leader(*partition), "append"), list[CopyRefused]()
    waiting = list(pieces(((each, len(each.body) + _RECORD_OVERHEAD) for each in records), _APPENDED_AT_ONCE))[::-1]
    while waiting:
        data = bytearray(pack(some := waiting.pop(), 0))
        stamp_crc(data)
        request = ProduceRequest(
            acks=i16(_ALL_IN_SYNC_REPLICAS),
            timeout=milliseconds(_APPEND_SECONDS),
            topic_data=(
                TopicProduceData(
                    name=TopicName(partition.topic),
                    partition_data=(PartitionProduceData(index=i32(partition.number), records=Records(bytes(data))),),
                ),
            ),
        )
        try:
            check_produced(_complete(await leader.call(request, ProduceResponse, 2 * _APPEND_SECONDS), {partition}))
        except CopyRefused as error:
            half = len(some) // 2 if "TOO_LARGE" in error.code else 0
            waiting += [some[half:], some[:half]] if half else []
            refused += [] if half else [error]
    raise_first(refused)
