"""Fetch (KIP-74, KIP-98) of committed data: its requests, and the answers of each partition.

Versions 12 and 13 are written and read here and not by kio, to avoid copies of the records: answers hold views of the
frame that the connection read. Version 13 names a topic by its id (KIP-516), so that reading never continues in a
recreated topic (invariant G); in both, the broker compares the epoch of the last batch read with its own log (KIP-320,
KIP-595), so that reading never continues in a truncated log either. A follower answers too (KIP-392): only the leader
epoch in the request makes a former leader refuse. In a session (KIP-227, see ``fetch_session``) a request names only
what has changed since the one before it.
"""

import datetime
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from appliance.errors import BatchCorrupt, BrokerBusy, PeerError
from appliance.grouping import grouped
from appliance.kafka.client.interface import Cluster, Connection
from appliance.kafka.protocol.answer import check
from appliance.kafka.protocol.flexible import NO_TAGS, array_size, head, read_text, skip_tags, tags, text
from appliance.kafka.protocol.metadata import NOWHERE, UNKNOWN_EPOCH, Metadata, Partition
from appliance.kafka.protocol.wire import SIZE, check_correlation
from appliance.kafka.records.batch import Batch, Converter, split, verify
from appliance.kafka.records.committed import AbortedTransaction, visible
from appliance.kafka.records.decompression import LIMIT, RECORD_BYTES
from appliance.kafka.records.records import Record, unpack
from appliance.kafka.records.varint import read_unsigned

API_KEY = 1
VERSION_BY_NAME = 12
VERSION_BY_ID = 13

_CONSUMER = -1
_AT_LEAST_ONE_BYTE = 1
_DIVERGING_EPOCH_TAG = 0
# A smaller share of a frame than this is copied, so that a few records never keep megabytes alive.
_SHARE_MIN = 4
_THROTTLED_MAX = 10

_REQUEST = struct.Struct(">iiiibii")
_ASKED = struct.Struct(">iiqiqi")
_FORGOTTEN = struct.Struct(">i")
_RESPONSE = struct.Struct(">ihi")
_PARTITION = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_EPOCH_END = struct.Struct(">iq")
_UUID_SIZE = 16


class WantedPartition(NamedTuple):
    """A partition to read from ``position`` on, about ``size`` bytes of it.

    ``topic_id`` is ``NOWHERE`` if unknown; ``last_epoch`` is the leader epoch of the batch before the position, and
    ``leader_epoch`` that of the leader; or ``UNKNOWN_EPOCH``.
    """

    partition: Partition
    topic_id: UUID
    position: int
    size: int
    last_epoch: int = UNKNOWN_EPOCH
    leader_epoch: int = UNKNOWN_EPOCH


class Session(NamedTuple):
    """The session of a request, and the request's place in it."""

    id: int
    epoch: int


NO_SESSION = Session(0, -1)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The bounds of one Fetch: its size in bytes, and the seconds that the broker waits for the first byte.

    Without ``committed`` it also returns what is undecided or aborted, and names no aborted transactions.
    """

    response_bytes: int
    wait: float
    committed: bool = True


class EpochEnd(NamedTuple):
    """The newest epoch in a broker's log that is not newer than the requested one, and its end there."""

    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """One partition's share of a Fetch response; ``stable_end`` is its last stable offset.

    ``diverges`` is the end of the last read epoch in the broker's log, if the log has less of it than was read, or
    nothing; None: they agree.
    """

    partition: Partition
    error: ErrorCode
    records: memoryview
    aborted: tuple[AbortedTransaction, ...]
    stable_end: int
    diverges: EpochEnd | None

    def batches(self, convert: Converter | None = None) -> Iterator[Batch]:
        """Its whole batches, in ascending order."""
        return split(self.records, convert, self.stable_end)


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The answer of each partition, and the session's id, 0 without a session.

    In a session, only partitions with news are answered.
    """

    session_id: int
    partitions: Sequence[FetchedPartition]
    throttle_time: datetime.timedelta = datetime.timedelta()


async def fetch(
    connection: Connection, wanted: Iterable[WantedPartition], limits: FetchLimits
) -> Sequence[FetchedPartition]:
    """Fetch these partitions; the first have priority when the response is full."""
    partitions = tuple(wanted)
    by_id = offers_ids(connection) and all(each.topic_id != NOWHERE for each in partitions)
    answer = await connection.ask(FetchExchange(partitions, limits, by_id, topic_names(partitions)))
    return answer.partitions


def offers_ids(connection: Connection) -> bool:
    """True when the broker accepts topic ids."""
    low, high = connection.offered.get(API_KEY, (0, -1))
    return low <= VERSION_BY_ID <= high


def topic_names(wanted: Iterable[WantedPartition]) -> dict[bytes, str]:
    """The topics' names by the bytes of their ids."""
    return {each.topic_id.bytes: each.partition.topic for each in wanted}


@dataclass(frozen=True, slots=True)
class FetchExchange:
    """A Fetch of ``wanted``, which names topics by id or by name.

    ``names`` holds the name of every topic that the answer may contain. In a session, a wanted partition stays wanted
    until it is ``forgotten``.
    """

    wanted: Sequence[WantedPartition]
    limits: FetchLimits
    by_id: bool
    names: Mapping[bytes, str]
    session: Session = NO_SESSION
    forgotten: Sequence[WantedPartition] = ()
    name: str = "FetchRequest"

    def frame(self, correlation: int, client_id: str) -> bytes:
        """The request's frame, size first."""
        limits, version = self.limits, VERSION_BY_ID if self.by_id else VERSION_BY_NAME
        wait = int(limits.wait * 1000)
        fixed = _REQUEST.pack(
            _CONSUMER, wait, _AT_LEAST_ONE_BYTE, limits.response_bytes, limits.committed, *self.session
        )
        begins = head(API_KEY, version, correlation, client_id) + fixed
        wanted = self._topics(self.wanted, _encode_partition)
        forgotten = self._topics(self.forgotten, lambda each: _FORGOTTEN.pack(each.partition.number))
        body = b"".join([begins, *wanted, *forgotten, text(""), NO_TAGS])  # of no rack
        return SIZE.pack(len(body)) + body

    def _topics(
        self, partitions: Sequence[WantedPartition], content: Callable[[WantedPartition], bytes]
    ) -> Iterator[bytes]:
        # A recreated topic is another one, while some of its old partitions are still wanted.
        by_topic = grouped(
            (each.topic_id.bytes if self.by_id else text(each.partition.topic), each) for each in partitions
        )
        yield array_size(len(by_topic))
        for topic, those in by_topic.items():
            yield topic
            yield array_size(len(those))
            yield from map(content, those)
            yield NO_TAGS

    def answer(self, frame: bytearray, correlation: int) -> FetchAnswer:
        """The records are views of the frame."""
        try:
            check_correlation(frame, correlation)
            at = skip_tags(frame, SIZE.size)
            throttled, code, session_id = _RESPONSE.unpack_from(frame, at)
            check(ErrorCode(code), "fetch")
            partitions = self._responses(memoryview(frame).toreadonly(), at + _RESPONSE.size)
            return FetchAnswer(session_id, list(partitions), datetime.timedelta(milliseconds=throttled))
        except (LookupError, struct.error, ValueError, BatchCorrupt) as error:
            raise PeerError(f"the broker sent an unreadable response to a Fetch: {error}") from error

    def _responses(self, view: memoryview, at: int) -> Iterator[FetchedPartition]:
        topics, at = read_unsigned(view, at)
        for _ in range(topics - 1):
            if self.by_id:
                name, at = self.names[bytes(view[at : at + _UUID_SIZE])], at + _UUID_SIZE
            else:
                name, at = read_text(view, at)
            partitions, at = read_unsigned(view, at)
            for _ in range(partitions - 1):
                fetched, at = _partition(view, at, name)
                yield fetched
            at = skip_tags(view, at)


def _encode_partition(wanted: WantedPartition) -> bytes:
    number = wanted.partition.number
    return _ASKED.pack(number, wanted.leader_epoch, wanted.position, wanted.last_epoch, -1, wanted.size) + NO_TAGS


def _partition(view: memoryview, at: int, topic: str) -> tuple[FetchedPartition, int]:
    number, code, _, stable_end, _ = _PARTITION.unpack_from(view, at)
    aborted, at = _aborted(view, at + _PARTITION.size)
    size, at = read_unsigned(view, at + SIZE.size)  # the preferred replica is not used here
    end = at + max(size - 1, 0)
    if end > len(view):
        raise ValueError("the records are cut short")
    records = view[at:end]
    if len(records) * _SHARE_MIN < len(view):
        records = memoryview(bytes(records))
    diverges = None
    tagged, at = tags(view, end)
    if _DIVERGING_EPOCH_TAG in tagged:
        diverges = EpochEnd(*_EPOCH_END.unpack_from(tagged[_DIVERGING_EPOCH_TAG]))
    return FetchedPartition(Partition(topic, number), ErrorCode(code), records, aborted, stable_end, diverges), at


def _aborted(view: memoryview, at: int) -> tuple[tuple[AbortedTransaction, ...], int]:
    count, at = read_unsigned(view, at)
    transactions = []
    for _ in range(count - 1):
        transactions.append(AbortedTransaction(*_ABORTED.unpack_from(view, at)))
        at = skip_tags(view, at + _ABORTED.size)
    return tuple(transactions), at


async def fetch_partition(
    cluster: Cluster, metadata: Metadata, partition: Partition, offset: int, purpose: str, limits: FetchLimits
) -> FetchedPartition:
    """One Fetch from the leader that ``metadata`` name, by the topic's id and that leader's epoch.

    So neither a recreated topic nor a former leader is mistaken for the right one.
    """
    topic, epoch = metadata.topics.get(partition.topic), metadata.leader_epoch(*partition)
    connection = await cluster.broker(metadata.leader(*partition), purpose)
    topic_id = topic.id if topic else NOWHERE
    wanted = WantedPartition(partition, topic_id, offset, limits.response_bytes, leader_epoch=epoch)
    doing = f"fetch {partition} from offset {offset}"
    # A throttling broker names no partition (KIP-219); the connection waits for the announced time.
    for _ in range(_THROTTLED_MAX):
        for fetched in await fetch(connection, [wanted], limits):
            check(fetched.error, doing)
            return fetched
    raise BrokerBusy(f"{doing}: the broker throttles, and answers nothing", "THROTTLING_QUOTA_EXCEEDED")


def committed_records(fetched: FetchedPartition, offset: int) -> tuple[list[Record], int]:
    """The committed records from ``offset`` on, as far as memory allows, and the offset to continue from."""
    batches, following = visible(fetched.records, fetched.aborted, offset, fetched.stable_end)
    records, room = list[Record](), LIMIT
    for data in batches:
        verify(data)
        some = unpack(data, offset)
        room -= sum(len(each.body) + RECORD_BYTES for each in some)
        if records and room < 0:
            return records, data.header.base_offset
        records += some
    return records, following
