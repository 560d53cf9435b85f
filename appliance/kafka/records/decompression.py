"""Decompress what producers have compressed, up to a limit: a few bytes may stand for gigabytes.

The codecs are numbered as in a batch's attributes (https://kafka.apache.org/documentation/#recordbatch). Snappy comes
raw or, from Java's producers, in the blocks of xerial's stream: 16 bytes, and before each block its size, i32.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator

from cramjam import DecompressionError, lz4, snappy, zstd

from appliance.errors import BatchCorrupt
from appliance.kafka.records.batch import CODEC_MASK, HEADER_SIZE, Batch

LIMIT = 64 * 1024 * 1024
"""Most bytes that the records of one batch take uncompressed, where they have to be."""

RECORD_BYTES = 100
"""Memory that a decoded record takes besides its bytes, about."""

_XERIAL = b"\x82SNAPPY\0"


def decompress_records(batch: Batch, limit: int = LIMIT) -> bytes:
    """The bytes of a batch's records, uncompressed; at most ``limit`` with RECORD_BYTES for each record."""
    header = batch.header
    room = limit - RECORD_BYTES * abs(header.records)
    try:
        if room < 0:
            raise _too_large(limit)
        return decompress(header.attributes & CODEC_MASK, batch.data[HEADER_SIZE:], room)
    except Exception as error:  # each codec has errors of its own
        raise BatchCorrupt(f"the batch at offset {header.base_offset} does not decompress: {error}") from error


def within_memory(batches: list[Batch], following: int) -> tuple[list[Batch], int]:
    """The first batches, one at least, that take up to 64 MiB, and the next offset."""
    room = LIMIT
    for number, batch in enumerate(batches):
        room -= len(decompress_records(batch)) + RECORD_BYTES * batch.header.records
        if room < 0 and number:
            return batches[:number], batch.header.base_offset
    return batches, following


def decompress(codec_bits: int, data: memoryview, limit: int = LIMIT) -> bytes:
    """The bytes, uncompressed; takes memory of the order of ``limit`` at most, whatever ``data`` is.

    Raises:
        ValueError: they would take more than ``limit``, or the codec is unknown.
        ValueError, DecompressionError, zlib.error, EOFError, OSError: they are damaged.
    """
    if codec_bits == 0:
        return bytes(data)
    if codec_bits == 1:
        return _gzip(data, limit)
    if codec_bits == 2:
        return _snappy(data, limit)
    if codec_bits in (3, 4):
        return _grown((lz4 if codec_bits == 3 else zstd).decompress_into, data, limit)
    raise ValueError(f"it has an unknown codec, {codec_bits}")


def _too_large(limit: int) -> ValueError:
    return ValueError(f"it takes more than {limit} bytes uncompressed")


def inflate(data: bytes, limit: int = LIMIT) -> bytes:
    """The bytes of a stream of zlib's."""
    stream = zlib.decompressobj()
    plain = stream.decompress(data, limit)
    if not stream.eof:
        raise _too_large(limit)
    return plain


def _gzip(data: memoryview, limit: int) -> bytes:
    plain = gzip.GzipFile(fileobj=io.BytesIO(data)).read(limit + 1)
    if len(plain) > limit:
        raise _too_large(limit)
    return plain


def _snappy(data: memoryview, limit: int) -> bytes:
    blocks = [*_xerial(data)] if bytes(data[: len(_XERIAL)]) == _XERIAL else [data]
    if sum(map(snappy.decompress_raw_len, blocks)) > limit:
        raise _too_large(limit)
    return b"".join(map(snappy.decompress_raw, blocks))


def _xerial(data: memoryview) -> Iterator[memoryview]:
    at = 2 * len(_XERIAL)
    while at < len(data):
        begin, end = at + 4, at + 4 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            raise ValueError("a block of snappy ends early")
        yield data[begin:end]
        at = end


def _grown(decode: Callable[[memoryview, bytearray], int], data: memoryview, limit: int) -> bytes:
    """Decode into ever more room, as the size is not told: what does not fit the last one is too large, or damaged."""
    size = max(64 * 1024, 4 * len(data))
    while True:
        room = bytearray(min(size, limit))
        try:
            return bytes(memoryview(room)[: decode(data, room)])
        except DecompressionError as error:
            del room  # the error has this frame, which would keep it
            if "whole buffer" not in str(error):
                raise
            if size >= limit:
                raise _too_large(limit) from error
        size *= 8
