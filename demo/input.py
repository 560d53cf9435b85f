"""The demo's input: a table of topics, and records computed from the topic and their number only.

No two records are equal, so that a comparison can name a missing or doubled one.
"""

import enum
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from appliance.errors import Unreachable

REGEX = r"orders\..+"
SUFFIX = "copy"
NOT_COPIED = ("orders", "reorders.bulk", "payments", f"orders.old.{SUFFIX}")
"""Topics that must not be copied: the regex matches only a part of the name, or the name already has the suffix."""

PROBE_RECORDS = 400
"""Number of records that are kept for measuring the latency."""
RECORDS_MIN = 1000

_SEED = 4711
_FILLER_BYTES = 1 << 18
_HOUR = 3_600_000
_STRIDE = 7919
"""A prime number, so that its multiples reach every length and every position of the filler."""


class Batching(enum.Enum):
    """The size of a producer's batches; NONE sends each record at once."""

    USUAL = "usual"
    TINY = "tiny"
    LARGE = "large"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class InputTopic:
    """One topic that is copied.

    ``share`` is its number of records in a thousand, and ``size`` the middle length of its values in bytes. Every
    ``tombstone_every``-th record has no value (0: none). ``backdated`` records have timestamps of their own, out of
    order.
    """

    name: str
    share: int
    partitions: int = 3
    codec: str = "lz4"
    size: int = 200
    keyed: bool = True
    tombstone_every: int = 0
    headers: bool = False
    backdated: bool = False
    batching: Batching = Batching.USUAL
    transactional: bool = False
    log_append_time: bool = False

    @property
    def copy(self) -> str:
        """The name of its copy."""
        return f"{self.name}.{SUFFIX}"


BULK = InputTopic("orders.bulk", 0, partitions=6, size=500)
PROBE = InputTopic("orders.probe", 0, partitions=1, batching=Batching.NONE)
TOPICS = (
    BULK,
    *(InputTopic(f"orders.{codec}", 60, codec=codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    InputTopic("orders.keyless", 30, keyed=False),
    InputTopic("orders.tombstones", 25, tombstone_every=3),
    InputTopic("orders.headers", 25, headers=True, backdated=True),
    InputTopic("orders.tiny-batches", 10, size=20, batching=Batching.TINY),
    InputTopic("orders.large-batches", 1, size=100_000, batching=Batching.LARGE),
    InputTopic("orders.log-append-time", 5, log_append_time=True),
    InputTopic("orders.transactions", 24, transactional=True),
)
"""The bulk topic gets the records that remain after the other topics' shares."""
COPIED = (*TOPICS, PROBE)
"""All topics that are copied. The latency measurement produces the probe's records."""


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record before it is produced; ``timestamp`` in milliseconds since the epoch, 0 for the producer's clock."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    timestamp: int


class Input:
    """The records of one run.

    Args:
        records: their number, at least ``RECORDS_MIN``, including the probe's; those of aborted transactions are added.
        now: milliseconds since the epoch; the times of backdated records lie before it.
    """

    def __init__(self, records: int, now: int) -> None:
        self.records = records
        self._now = now
        self._filler = _filler()

    def count(self, topic: InputTopic) -> int:
        """The number of records of ``topic`` that a consumer will see."""
        if topic is PROBE:
            return PROBE_RECORDS
        if topic is not BULK:
            return self.records * topic.share // 1000
        return self.records - PROBE_RECORDS - sum(self.count(other) for other in TOPICS if other is not BULK)

    def half(self, topic: InputTopic, second: bool) -> range:
        """The numbers of the topic's records in the first or the second half of the run."""
        middle = self.count(topic) // 2
        return range(middle, self.count(topic)) if second else range(middle)

    def of(self, topic: InputTopic, numbers: Iterable[int], note: str = "") -> Iterator[InputRecord]:
        """The topic's records of these numbers; ``note`` becomes part of their values."""
        return (self._record(topic, number, note) for number in numbers)

    def _record(self, topic: InputTopic, number: int, note: str) -> InputRecord:
        # Three consecutive records share a key; a tombstone is the first of the three.
        key = b"customer-%d" % (number // 3) if topic.keyed else None
        is_tombstone = topic.tombstone_every and number % topic.tombstone_every == 0
        return InputRecord(
            partition=(zlib.crc32(key) if key else number) % topic.partitions,
            key=key,
            value=None if is_tombstone else self._value(topic, number, note),
            headers=_headers(number) if topic.headers else [],
            timestamp=self._now - _HOUR + number * 37 % 1000 if topic.backdated else 0,
        )

    def _value(self, topic: InputTopic, number: int, note: str) -> bytes:
        length = topic.size // 2 + number * _STRIDE % topic.size
        begin = number * _STRIDE % (_FILLER_BYTES - length)
        return f"{topic.name} {number} {note}".encode() + self._filler[begin : begin + length]


def _headers(number: int) -> list[tuple[str, str | bytes | None]]:
    kinds: tuple[list[tuple[str, str | bytes | None]], ...] = (
        [],
        [("trace", b"%016x" % number)],
        [("größe", b"\x00\xff"), ("empty", b""), ("null", None)],
        [("tag", b"a"), ("tag", b"b"), ("tag", b"a")],
    )
    return kinds[number % len(kinds)]


def _filler() -> bytes:
    """Text that compresses about as well as business data."""
    chance = random.Random(_SEED)
    words = [chance.randbytes(chance.randint(1, 5)).hex() for _ in range(4000)]
    return " ".join(chance.choices(words, k=_FILLER_BYTES // 4)).encode()[:_FILLER_BYTES]


_SECONDS = 30.0


def make_topics(client: Mapping[str, str]) -> None:
    """Create all topics, and write one record to each topic that is not copied; blocks.

    Raises:
        Unreachable: the cluster did not do it.
    """
    wanted = [NewTopic(topic.name, topic.partitions, config=_config(topic)) for topic in COPIED]
    wanted += [NewTopic(name, 1) for name in NOT_COPIED]
    admin = AdminClient({**client})
    try:
        for future in admin.create_topics(wanted, request_timeout=_SECONDS).values():
            future.result(_SECONDS)
        producer = Producer({**client})
        for name in NOT_COPIED:
            producer.produce(name, b"not for the destination")
        unsent = producer.flush(_SECONDS)
    except KafkaException as error:
        raise Unreachable(f"the demo's topics could not be made: {error.args[0]}") from error
    if unsent:
        raise Unreachable(f"the source cluster took no record within {_SECONDS:g} s")


def _config(topic: InputTopic) -> dict[str, str]:
    return {"message.timestamp.type": "LogAppendTime"} if topic.log_append_time else {}
