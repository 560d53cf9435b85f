"""An independent read_committed consumer, which sees every record of some partitions, live or up to their ends."""

import asyncio
import functools
import json
import threading
import uuid
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from testbed.comparison import Track
from testbed.reading import fingerprint
from tests.faults.history import Partition, Progress
from tests.faults.thread import in_own_thread

_FATAL = frozenset(
    {KafkaError._BAD_MSG, KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}
)
"""What no broken connection explains."""


class Observer:
    """Reads partitions from their first record on, by names of the reader's choice.

    Args:
        client: configuration that reaches the cluster.
        partitions: what to call each partition that is read; those of ``positions`` are decoded instead.
        positions: the positions topic with its number of partitions, or none.
    """

    def __init__(
        self,
        client: Mapping[str, str],
        partitions: Mapping[Partition, Partition],
        positions: tuple[str, int] | None = None,
    ) -> None:
        self._tracks = {name: Track() for name in partitions.values()}
        self._progress: dict[Partition, list[Progress]] = {name: [] for name in partitions.values()}
        self.owners: dict[int, list[str]] = {}
        """The hosts that have taken each lane, in their order."""

        self._names = partitions
        self._positions = positions[0] if positions else None
        further = [(positions[0], number) for number in range(positions[1])] if positions else []
        self._unfinished = {*partitions, *further}
        self._consumer = Consumer(
            {
                **client,
                "group.id": f"observer-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        self._stopping = threading.Event()
        self._thread: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Read on for ever."""
        self._thread = in_own_thread(functools.partial(self._read, until_end=False))

    async def read_to_ends(self) -> None:
        """Read once up to where every partition ends now."""
        self._thread = in_own_thread(functools.partial(self._read, until_end=True))
        await self.stop(after=True)

    async def stop(self, *, after: bool = False) -> None:
        """End reading, or with ``after`` wait for its end.

        Raises:
            AssertionError: the log cannot be read as a log should be.
        """
        if not after:
            self._stopping.set()
        if self._thread is not None:
            await self._thread

    @property
    def tracks(self) -> dict[Partition, Track]:
        """A snapshot of the records seen so far of each partition."""
        return {name: _snapshot(track) for name, track in self._tracks.items()}

    @property
    def progress(self) -> dict[Partition, list[Progress]]:
        """The positions of each partition that were seen so far, in their order."""
        return {name: list(seen) for name, seen in self._progress.items()}

    def counts(self) -> dict[Partition, int]:
        """The number of records seen so far of each partition.

        Raises:
            AssertionError: as ``stop``.
        """
        if self._thread is not None and self._thread.done():
            self._thread.result()
        return {name: len(track.fingerprints) for name, track in self._tracks.items()}

    def _read(self, *, until_end: bool) -> None:
        try:
            # An offset needs no question; nothing of these topics is ever deleted.
            self._consumer.assign([TopicPartition(*partition, 0) for partition in self._unfinished])
            while not self._stopping.is_set() and not (until_end and not self._unfinished):
                for message in self._consumer.consume(1000, 0.05):
                    self._take(message)
        finally:
            self._consumer.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        partition: Partition = (message.topic() or "", message.partition() or 0)
        if error is not None:
            assert error.code() not in _FATAL, f"{partition}: {error.str()}"
            if error.code() == KafkaError._PARTITION_EOF:
                self._unfinished.discard(partition)
        elif message.topic() == self._positions:
            self._take_position(message)
        else:
            found = fingerprint(message.key(), message.value(), message.headers() or [], message.timestamp()[1])
            self._tracks[self._names[partition]].append(message.offset() or 0, found)

    def _take_position(self, message: Message) -> None:
        """A position of one of our partitions; the topic remembers other things too."""
        key, value = json.loads(message.key() or b"{}"), json.loads(message.value() or b"{}")
        if set(key) == {"lane"}:
            self.owners.setdefault(key["lane"], []).append(value["host"])
        if set(key) == {"topic", "partition"} and {"next_offset", "records"} <= set(value):
            seen = self._progress.get((key["topic"], key["partition"]))
            if seen is not None:
                seen.append(Progress(value["next_offset"], value["records"]))


def _snapshot(track: Track) -> Track:
    count = len(track.fingerprints)  # what is appended last
    return Track(track.offsets[:count], track.fingerprints[:count])
