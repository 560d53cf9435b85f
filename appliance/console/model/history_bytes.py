"""The history and the events of a link as bytes, in which they are kept over a restart.

A line with the format, then zlib of: a line of JSON with the link, the subjects and the events; then of each of the
rings the times, and each subject's numbers, of 8 bytes.
"""

import json
import sys
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import astuple

from appliance.console.model.events import Event
from appliance.console.model.history import PARTITIONS_MAX, TOPICS_MAX, History
from appliance.console.model.rings import Subject

_KIND = b"kafka-cloud-replicator history "
_FORMAT = b"%s1 %s-endian" % (_KIND, sys.byteorder.encode())
_HEAD_MAX = 512 * 1024
BYTES_MAX = 4 * 1024 * 1024
"""Largest size: 10 kB for each of the subjects, and the head."""


class NotReadable(ValueError):
    """The bytes are damaged, or of another release or link."""


def to_bytes(link: str, history: History, events: Sequence[Event]) -> bytes:
    """The bytes of a history, and of as many of the events, the newest first, as there is room for."""
    subjects = [one for one in history.rings["hour"].of if one.topic]
    head = json.dumps({"link": link, "subjects": subjects, "events": [*map(astuple, events)]}).encode()
    if len(head) > _HEAD_MAX:
        return to_bytes(link, history, events[: len(events) // 2])
    numbers = b"".join(ring.tobytes() for ring in history.arrays)
    return _FORMAT + b"\n" + zlib.compress(head + b"\n" + numbers, 1)


def from_bytes(link: str, content: bytes) -> tuple[History, list[Event]]:
    """The history and the events of these bytes."""
    first, _, body = content.partition(b"\n")
    if first != _FORMAT and first.startswith(_KIND):
        raise NotReadable("it is of another release or machine")
    history, unpacked = History(), zlib.decompressobj()
    try:
        head, _, numbers = unpacked.decompress(body, BYTES_MAX).partition(b"\n")
        document = json.loads(head)
        subjects = [Subject(str(topic), int(number)) for topic, number in document["subjects"]]
        events = [Event(int(at), *map(str, texts)) for at, *texts in document["events"]]
        owner = document["link"]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error) as error:
        raise NotReadable(str(error)) from error
    history.keep(subjects[: TOPICS_MAX + PARTITIONS_MAX])
    whole = unpacked.eof and len(numbers) == sum(8 * len(ring) for ring in history.arrays)
    if not whole or owner != link:
        raise NotReadable("it is not whole, or another link's")
    for ring in history.arrays:
        ring[:], numbers = array(ring.typecode, numbers[: 8 * len(ring)]), numbers[8 * len(ring) :]
    return history, events
