"""The log of a lane's partition of the positions topic, written directly into the directory of a stopped broker.

Commit ``i`` is a position at offset 2 i and its commit marker at 2 i + 1. For all but the newest commits, only the
markers are written. The first pass of Kafka's cleaner leaves only markers, because each position has a newer one after
it. The indexes are empty, so the broker reads a segment from its beginning; the cleaner makes new ones.
"""

import struct
import time
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

from appliance.kafka.records.batch import (
    ATTRIBUTES_AT,
    CONTROL,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    restamp,
    stamp_crc,
)
from appliance.kafka.records.records import Record, body, pack
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.position import Position

_SEGMENT_BYTES = 4 * 1024 * 1024
_CHECKPOINT = "cleaner-offset-checkpoint"
_PRODUCER = 1_000_000  # higher than any id that the broker assigns
_COMMIT_KEY = struct.pack(">hh", 0, 1)
_COMMIT_VALUE = struct.pack(">hi", 0, 0)
_OFFSET = struct.Struct(">q")
_ATTRIBUTES = struct.Struct(">h")
_FIRST_LEADER_EPOCH = struct.pack(">i", 0)


def write(directory: Path, commits: int, complete: int) -> None:
    """Write the log of ``commits`` commits into a partition's directory, in place of an empty one.

    The newest ``complete`` of them also have their positions.
    """
    for file in [*directory.glob("*.log"), *directory.glob("*index"), *directory.glob("*.snapshot")]:
        file.unlink()
    now = time.time_ns() // 1_000_000
    base = 0
    for segment, following in (*_markers(commits - complete, now), *_transactions(commits - complete, commits, now)):
        (directory / f"{base:020}.log").write_bytes(segment)
        for index in ("index", "timeindex"):
            (directory / f"{base:020}.{index}").touch()
        base = following


def is_made(directory: Path) -> bool:
    """True when the broker has made a partition's log, of which this file is the last."""
    return (directory / "partition.metadata").exists()


def size(directory: Path) -> int:
    """The size of a partition's log in bytes."""
    return sum(file.stat().st_size for file in directory.glob("*.log"))


def clean_again(data: Path, topics: Collection[str]) -> None:
    """Make the cleaner of the stopped broker begin at the start of these topics' logs after its next start."""
    left = [line for line in _cleaned(data) if line[0] not in topics]
    (data / _CHECKPOINT).write_text("\n".join(["0", str(len(left)), *map(" ".join, left), ""]))


def cleaned(data: Path) -> set[str]:
    """The topics whose first partition the broker's cleaner has finished."""
    return {topic for topic, partition, offset in _cleaned(data) if partition == "0" and int(offset)}


def _cleaned(data: Path) -> list[list[str]]:
    """Topic, partition and next offset of each entry; the file of the broker's cleaner has a version and the count
    before them."""
    checkpoint = data / _CHECKPOINT
    return [line.split() for line in checkpoint.read_text().splitlines()[2:]] if checkpoint.exists() else []


def _markers(commits: int, now: int) -> Iterator[tuple[bytearray, int]]:
    """Segments of commit markers only, each with the offset after it."""
    marker = bytes(_marker(now))
    at_once = _SEGMENT_BYTES // len(marker)
    for first in range(0, commits, at_once):
        count = min(at_once, commits - first)
        segment = bytearray(marker * count)
        for number in range(count):
            _OFFSET.pack_into(segment, number * len(marker), 2 * (first + number) + 1)
        yield segment, 2 * (first + count)


def _transactions(first: int, end: int, now: int) -> Iterator[tuple[bytearray, int]]:
    """Segments of positions and commit markers, each with the offset after it."""
    marker, segment = _marker(now), bytearray()
    for commit in range(first, end):
        for offset, batch in ((2 * commit, _position(commit, now)), (2 * commit + 1, marker)):
            _OFFSET.pack_into(batch, 0, offset)
            segment += batch
        if len(segment) > _SEGMENT_BYTES - 1024 or commit == end - 1:
            yield segment, 2 * commit + 2
            segment = bytearray()


def _position(commit: int, now: int) -> bytearray:
    held = Position(uuid.UUID(int=1), uuid.UUID(int=2), commit, 0, commit, 500 * commit, now)
    batch = bytearray(pack([encode_position(("bench", 0), held, now)], 0))
    restamp(batch, _PRODUCER, 0, commit)
    return _led(batch)


def _marker(now: int) -> bytearray:
    batch = bytearray(pack([Record(0, now, body(_COMMIT_KEY, _COMMIT_VALUE))], 0))
    restamp(batch, _PRODUCER, 0, -1)
    _ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, TRANSACTIONAL | CONTROL)
    stamp_crc(batch)
    return _led(batch)


def _led(batch: bytearray) -> bytearray:
    """The batch as the partition's first leader stores it."""
    batch[LOG_OVERHEAD : LOG_OVERHEAD + len(_FIRST_LEADER_EPOCH)] = _FIRST_LEADER_EPOCH
    return batch
