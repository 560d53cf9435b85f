"""Decompress what producers have compressed, up to a limit: a few bytes may stand for gigabytes.

The codecs are numbered as in a batch's attributes (https://kafka.apache.org/documentation/#recordbatch). Snappy comes
raw or, from Java's producers, in the blocks of xerial's stream: 16 bytes, and before each block its size, i32.
"""

import zlib
from collections.abc import Callable, Iterator

from cramjam import DecompressionError, lz4, snappy, zstd

LIMIT = 64 * 1024 * 1024
"""Most bytes that the records of one batch take uncompressed, where they have to be."""

_GZIP = 16 + zlib.MAX_WBITS
_XERIAL = b"\x82SNAPPY\0"
_XERIAL_HEAD = 16
_FIRST, _GROWTH = 64 * 1024, 8

Decode = Callable[[memoryview, bytearray], int]


class TooLarge(ValueError):
    """The bytes take more than the limit uncompressed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"it takes more than {limit} bytes uncompressed")


def decompress(codec_bits: int, data: memoryview, limit: int = LIMIT) -> bytes:
    """The bytes, uncompressed; takes memory of the order of ``limit`` at most, whatever ``data`` is.

    Raises:
        TooLarge: they would take more than ``limit``.
        ValueError, DecompressionError, zlib.error: they are damaged, or the codec is unknown.
    """
    if codec_bits == 0:
        return bytes(data)
    if codec_bits == 1:
        return _gzip(data, limit)
    if codec_bits == 2:
        return _snappy(data, limit)
    if codec_bits in _DECODE:
        return _grown(_DECODE[codec_bits], data, limit)
    raise ValueError(f"it has an unknown codec, {codec_bits}")


def _gzip(data: memoryview, limit: int) -> bytes:
    found, rest, size = [], bytes(data), 0
    while rest:  # one member after another
        member = zlib.decompressobj(_GZIP)
        found.append(member.decompress(rest, limit + 1 - size))
        size += len(found[-1])
        if size > limit:
            raise TooLarge(limit)
        if not member.eof:
            raise ValueError("it ends early")
        rest = member.unused_data
    return b"".join(found)


def _snappy(data: memoryview, limit: int) -> bytes:
    blocks = [*_xerial(data)] if bytes(data[: len(_XERIAL)]) == _XERIAL else [data]
    if sum(map(snappy.decompress_raw_len, blocks)) > limit:
        raise TooLarge(limit)
    return b"".join(map(snappy.decompress_raw, blocks))


def _xerial(data: memoryview) -> Iterator[memoryview]:
    at = _XERIAL_HEAD
    while at < len(data):
        begin, end = at + 4, at + 4 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            raise ValueError("a block of snappy ends early")
        yield data[begin:end]
        at = end


def _grown(decode: Decode, data: memoryview, limit: int) -> bytes:
    """Decode into ever more room, as the size is not told: what does not fit the last one is too large, or damaged."""
    size = max(_FIRST, 4 * len(data))
    while True:
        room = bytearray(min(size, limit))
        try:
            return bytes(memoryview(room)[: decode(data, room)])
        except DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
            if size >= limit:
                raise TooLarge(limit) from error
        size *= _GROWTH


_DECODE: dict[int, Decode] = {3: lz4.decompress_into, 4: zstd.decompress_into}
