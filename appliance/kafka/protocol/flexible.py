"""The parts of flexible requests and responses (KIP-482): compact lengths, and tagged fields.

A compact length is an unsigned varint one larger than the length; 0 stands for null.
"""

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from appliance.kafka.records.varint import Buffer, encode_unsigned, read_unsigned

NO_TAGS = b"\x00"

_LENGTH, _TEXT_LENGTH = struct.Struct(">i"), struct.Struct(">h")
_HEAD = struct.Struct(">hhih")


def head(api_key: int, version: int, correlation: int, client_id: str, tags: bytes = NO_TAGS) -> bytes:
    """The header of a request: version 2, or 1 with no bytes for ``tags``."""
    name = client_id.encode()
    return _HEAD.pack(api_key, version, correlation, len(name)) + name + tags


def array_size(size: int) -> bytes:
    """The length of a compact array, of compact bytes or of a compact string."""
    return encode_unsigned(size + 1)


def text(value: str) -> bytes:
    """A compact string."""
    encoded = value.encode()
    return array_size(len(encoded)) + encoded


def plain_array_size(size: int) -> bytes:
    """The length of an array or of bytes in a version that is not flexible."""
    return _LENGTH.pack(size)


def plain_text(value: str) -> bytes:
    """A string in a version that is not flexible."""
    encoded = value.encode()
    return _TEXT_LENGTH.pack(len(encoded)) + encoded


class Form(NamedTuple):
    """The form of lengths, strings and empty tagged fields in a version."""

    array_size: Callable[[int], bytes]
    text: Callable[[str], bytes]
    no_tags: bytes


FLEXIBLE = Form(array_size, text, NO_TAGS)
PLAIN = Form(plain_array_size, plain_text, b"")


def read_text(data: memoryview, at: int) -> tuple[str, int]:
    """The compact string at ``at``, null as an empty one, and the index behind it.

    Raises:
        IndexError, BatchCorrupt: the data end in its length, or the length is invalid.
        UnicodeDecodeError: it is not text.
    """
    size, at = read_unsigned(data, at)
    end = at + max(size - 1, 0)
    return str(data[at:end], "utf-8"), end


def tags(data: memoryview, at: int) -> tuple[Mapping[int, memoryview], int]:
    """The tagged fields at ``at`` by their tag, and the index behind them."""
    count, at = read_unsigned(data, at)
    fields = {}
    for _ in range(count):
        tag, at = read_unsigned(data, at)
        size, at = read_unsigned(data, at)
        fields[tag] = data[at : at + size]
        at += size
    return fields, at


def skip_tags(data: Buffer, at: int) -> int:
    """The index behind the tagged fields at ``at``."""
    if data[at] == 0:
        return at + 1
    return tags(memoryview(data), at)[1]
