"""Produce (KIP-98) of stamped batches: what is sent, and whether it was taken.

Versions 7 to 9 are written here and not by kio: a batch is copied once, from where it was fetched to where it is sent
from, and stamped there. All three say the same; from 9 on a request is flexible (KIP-482).
"""

import asyncio
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.produce.v9 import ProduceRequest, ProduceResponse

from appliance.errors import BrokerRefused, CopyRefused
from appliance.kafka import versions
from appliance.kafka.answer import failure
from appliance.kafka.batch import restamp
from appliance.kafka.connection import BrokerConnection
from appliance.kafka.flexible import FLEXIBLE, PLAIN, Form, head
from appliance.kafka.offsets import Partition
from appliance.kafka.older import decode_older
from appliance.kafka.transactions import Producer
from appliance.kafka.varint import Buffer
from appliance.kafka.wire import SIZE, decode

API_KEY = 0
VERSION = 9
_FLEXIBLE_FROM = 9

_ALL_IN_SYNC_REPLICAS = -1
_FIXED = struct.Struct(">hi")
_INDEX = struct.Struct(">i")

_OF_THE_PRODUCER = frozenset(
    {
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "DUPLICATE_SEQUENCE_NUMBER",
        "INVALID_TXN_STATE",
        "INVALID_PRODUCER_ID_MAPPING",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNKNOWN_PRODUCER_ID",
    }
)
"""Refusals that are about the producer's state, which a new epoch mends, and not about the batch."""


class Copy(NamedTuple):
    """A batch for a partition, and the sequence number that its first record gets; ``data`` stays as it is."""

    partition: Partition
    data: Buffer
    sequence: int


async def produce(
    leader: BrokerConnection, producer: Producer, copies: Collection[Copy], timeout: float
) -> "asyncio.Future[ProduceResponse]":
    """Send one batch for each partition, in order with what this connection was sent before.

    The answer is to be given to ``check_produced``.
    """
    version = versions.version(leader.offered, ProduceRequest)
    return await leader.send(ProduceExchange(producer, copies, timeout, version))


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
        """Add the copies, and tell where each begins."""
        array_size, text, no_tags = self._form
        by_topic: dict[str, list[Copy]] = {}
        for copy in self.copies:
            by_topic.setdefault(copy.partition[0], []).append(copy)
        pieces.add(array_size(len(by_topic)))
        for topic, copies in by_topic.items():
            pieces.add(text(topic) + array_size(len(copies)))
            for copy in copies:
                pieces.add(_INDEX.pack(copy.partition[1]) + array_size(len(copy.data)))
                yield pieces.size, copy
                pieces.add(copy.data)
                pieces.add(no_tags)
            pieces.add(no_tags)

    @property
    def _form(self) -> Form:
        return FLEXIBLE if self.version >= _FLEXIBLE_FROM else PLAIN

    def answer(self, frame: bytearray, correlation: int) -> ProduceResponse:
        """The response, which is to be given to ``check_produced``.

        Raises:
            PeerError: the bytes are not that response, or answer another request.
        """
        if self.version == VERSION:
            return decode(ProduceResponse, frame, correlation)
        return decode_older(ProduceResponse, self.version, frame, correlation)


@dataclass(slots=True)
class _Pieces:
    """What a frame is made of, in order, and its size so far."""

    pieces: list[Buffer] = field(default_factory=list)
    size: int = 0

    def add(self, piece: Buffer) -> None:
        self.pieces.append(piece)
        self.size += len(piece)


def check_produced(response: ProduceResponse) -> None:
    """Nothing, when every partition took its batch.

    Raises:
        CopyRefused: by the first that will never take it.
        Fenced, BrokerBusy: by the first that did not.
    """
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code is not ErrorCode.none:
                detail = f" ({answer.error_message})" if answer.error_message else ""
                error = failure(answer.error_code, f"produce to {topic.name}-{answer.index}{detail}")
                if type(error) is BrokerRefused and error.code not in _OF_THE_PRODUCER:
                    raise CopyRefused(str(error), error.code, (str(topic.name), int(answer.index)))
                raise error
