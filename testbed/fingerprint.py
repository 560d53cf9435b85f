"""What a record is, in 64 bits: two records that a consumer could tell apart have different fingerprints.

::

    fingerprint = BLAKE2b-64(timestamp i64 | key | value | count of headers i32 | (name | value)*)
    field       = length i32, -1 for null | bytes

That two different records share one by chance happens once in 2^64 comparisons.
"""

import hashlib
import struct
from collections.abc import Sequence

Headers = Sequence[tuple[str, bytes | None]]

_HEAD = struct.Struct("!q")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)


def fingerprint(key: bytes | None, value: bytes | None, headers: Headers, timestamp: int) -> int:
    """The fingerprint; ``timestamp`` in milliseconds since the epoch. Null and empty differ, as does headers' order."""
    parts = [_HEAD.pack(timestamp), _field(key), _field(value), _LENGTH.pack(len(headers))]
    for name, content in headers:
        parts += [_field(name.encode()), _field(content)]
    return int.from_bytes(hashlib.blake2b(b"".join(parts), digest_size=8).digest(), "big")


def _field(content: bytes | None) -> bytes:
    return _NULL if content is None else _LENGTH.pack(len(content)) + content
