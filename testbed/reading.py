"""An independent read_committed consumer, which reads from the first record of each partition to the last one."""

import hashlib
import struct
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from appliance.errors import Unreachable
from testbed.comparison import Track
from testbed.tasks import Reached

_PATIENCE = 30.0
_AT_ONCE = 1000

Partition = tuple[str, int]
"""A topic, and a partition number."""


@dataclass(slots=True)
class Reading:
    """The records that a consumer read; ``bytes`` are those of keys, values and headers."""

    tracks: dict[Partition, Track] = field(default_factory=dict)
    records: int = 0
    bytes: int = 0

    def add(self, message: Message) -> None:
        """Add a record."""
        key, value = message.key(), message.value()
        headers = cast("Headers", message.headers() or ())
        partition = cast("Partition", (message.topic(), message.partition()))
        offset = cast("int", message.offset())
        self.tracks[partition].append(offset, fingerprint(key, value, headers, message.timestamp()[1]))
        self.records += 1
        self.bytes += len(key or b"") + len(value or b"")
        self.bytes += sum(len(name.encode()) + len(content or b"") for name, content in headers)


def committed_consumer(client: Mapping[str, str]) -> Consumer:
    """A consumer of committed records only; the caller assigns its partitions and offsets."""
    return Consumer(
        {
            **client,
            "group.id": f"demo-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 10,
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )


def read(
    client: Mapping[str, str], partitions: Iterable[Partition], reached: Reached, stopping: threading.Event
) -> Reading:
    """The committed records of these partitions up to their current ends; blocks until then or until ``stopping``.

    Raises:
        Unreachable: no record came for half a minute, or the consumer failed.
    """
    reading = Reading({partition: Track() for partition in partitions})
    unfinished = set(reading.tracks)
    consumer = committed_consumer(client)
    try:
        consumer.assign([TopicPartition(*partition, OFFSET_BEGINNING) for partition in unfinished])
        deadline = time.monotonic() + _PATIENCE
        while unfinished and not stopping.is_set():
            messages = consumer.consume(_AT_ONCE, 0.05)
            if messages:
                deadline = time.monotonic() + _PATIENCE
            elif time.monotonic() > deadline:
                raise Unreachable(f"nothing came from {len(unfinished)} partitions for {_PATIENCE:g} s")
            for message in messages:
                if not has_record(message):
                    unfinished.discard(cast("Partition", (message.topic(), message.partition())))
                else:
                    reading.add(message)
            reached(reading.records)
    except KafkaException as error:
        raise Unreachable(f"records could not be read: {error.args[0]}") from error
    finally:
        consumer.close()
    return reading


def has_record(message: Message) -> bool:
    """True for a record, and false for the end of a partition.

    Raises:
        Unreachable: it is an error.
    """
    error = message.error()
    if error is None:
        return True
    if error.code() == KafkaError._PARTITION_EOF:
        return False
    raise Unreachable(f"{message.topic()} partition {message.partition()} could not be read: {error.str()}")


Headers = Sequence[tuple[str, bytes | None]]

_HEAD = struct.Struct("!q")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)


def fingerprint(key: bytes | None, value: bytes | None, headers: Headers, timestamp: int) -> int:
    """The fingerprint; ``timestamp`` in milliseconds since the epoch. Null differs from empty, and the headers' order
    counts."""
    parts = [_HEAD.pack(timestamp), _field(key), _field(value), _LENGTH.pack(len(headers))]
    for name, content in headers:
        parts += [_field(name.encode()), _field(content)]
    return int.from_bytes(hashlib.blake2b(b"".join(parts), digest_size=8).digest(), "big")


def _field(content: bytes | None) -> bytes:
    return _NULL if content is None else _LENGTH.pack(len(content)) + content
