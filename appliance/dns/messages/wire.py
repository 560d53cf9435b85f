"""Parse DNS messages from untrusted bytes (RFC 1035, section 4.1).

A message, big-endian::

    header      id u16 | flags u16 | counts of questions, answers, authorities, additionals: u16 each
    question    name | type u16 | class u16
    record      name | type u16 | class u16 | ttl u32 | length u16 | data
    name        (length u8 | label)* | 0 u8, where a pointer (two octets, 0xC000 set) may stand for the rest

dnslib writes our messages and holds the codes; whole foreign messages are not given to its parser, which takes labels
of 191 octets that it cannot write back, refuses labels that are no UTF-8, and reads the data of every record.
"""

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from dnslib.buffer import Buffer
from dnslib.buffer import BufferError as MessageEnds

from appliance.errors import PeerError

HEADER_SIZE = 12
OPCODE_MASK = 0x7800
CODE_MASK = 0x000F

_LABEL_MAX = 63
_NAME_MAX = 255
_POINTER = 0xC0


class Flag(enum.IntFlag):
    """The bits of the header's second word that are neither opcode nor response code."""

    RESPONSE = 0x8000
    AUTHORITATIVE = 0x0400
    TRUNCATED = 0x0200
    RECURSION_DESIRED = 0x0100
    RECURSION_AVAILABLE = 0x0080
    AUTHENTIC_DATA = 0x0020
    CHECKING_DISABLED = 0x0010


Name = tuple[bytes, ...]
"""The labels of a name as they came, without the empty one of the root."""


@dataclass(frozen=True, slots=True)
class Head:
    """A message's header and its one question.

    ``counts`` are the records announced as answers, authorities and additionals; ``size`` the octets read so far.
    """

    identifier: int
    flags: int
    counts: tuple[int, int, int]
    name: Name
    record_type: int
    record_class: int
    size: int


@dataclass(frozen=True, slots=True)
class Record:
    """A resource record, its data uninterpreted; ``at_root`` tells that its owner is the root."""

    at_root: bool
    record_type: int
    record_class: int
    ttl: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Sections:
    """The records of a message."""

    answers: tuple[Record, ...]
    authorities: tuple[Record, ...]
    additionals: tuple[Record, ...]


def read_head(message: bytes) -> Head:
    """Read the header and the question."""
    buffer = Buffer(message)
    with _foreign_bytes():
        identifier, flags, questions, *counts = buffer.unpack("!6H")
        if questions != 1:
            raise PeerError(f"a DNS message with {questions} questions")
        name = _read_name(buffer)
        record_type, record_class = buffer.unpack("!HH")
    return Head(identifier, flags, (counts[0], counts[1], counts[2]), name, record_type, record_class, buffer.offset)


def read_sections(message: bytes, head: Head) -> Sections:
    """Read the records that follow ``head``."""
    buffer = Buffer(message)
    buffer.offset = head.size
    with _foreign_bytes():
        return Sections(*(tuple(_read_record(buffer) for _ in range(count)) for count in head.counts))


@contextlib.contextmanager
def _foreign_bytes() -> Iterator[None]:
    try:
        yield
    except MessageEnds as error:
        raise PeerError("a DNS message that ends too early") from error


def _read_name(buffer: Buffer) -> Name:
    # Nothing stands before the question that a pointer could mean, so that one here is garbage.
    labels: list[bytes] = []
    while length := buffer.get(1)[0]:
        if length > _LABEL_MAX:
            raise PeerError("a DNS question whose label is too long, or a pointer")
        labels.append(buffer.get(length))
    if sum(len(label) + 1 for label in labels) >= _NAME_MAX:
        raise PeerError("a DNS question whose name is longer than 255 octets")
    return tuple(labels)


def _read_record(buffer: Buffer) -> Record:
    start = buffer.offset
    _skip_name(buffer)
    at_root = buffer.offset == start + 1
    record_type, record_class, ttl, length = buffer.unpack("!HHIH")
    return Record(at_root, record_type, record_class, ttl, buffer.get(length))


def _skip_name(buffer: Buffer) -> None:
    while length := buffer.get(1)[0]:
        if length >= _POINTER:
            buffer.get(1)
            return
        if length > _LABEL_MAX:
            raise PeerError("a DNS record whose name has a label of unknown type")
        buffer.get(length)
