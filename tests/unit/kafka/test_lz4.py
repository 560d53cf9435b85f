"""Our LZ4 frames, compared with the codec's: written ones, single blocks, and frames that the codec decodes."""

from random import Random

import cramjam
import pytest
from aiokafka import codec
from hypothesis import given
from hypothesis import strategies as st

from appliance.kafka.records.batch import HEADER, Batch, Header
from appliance.kafka.records.lz4 import BLOCK_BYTES, without_codec
from appliance.kafka.records.lz4 import frame as written
from appliance.kafka.records.records import unpack
from tests.support.batches import made, only, patched

MAGIC = b"\x04\x22\x4d\x18"
JAVA = 0x82
"""The checksum of a header without flags and with blocks of up to 64 KiB, as in Java's producers."""
RECORDS = b"a record's bytes, which repeat, which repeat" * 9
NOW = 1_700_000_000_000


def framed(frame: bytes, codec_bits: int = 3) -> Batch:
    """A batch with the frame as its records; of its header only the codec matters here."""
    header = only(made([(NOW, None, b"x", [])])).header._replace(attributes=codec_bits)
    return Batch(header, memoryview(HEADER.pack(*header) + frame))


def compressed(records: bytes) -> bytes:
    return bytes(cramjam.lz4.compress_block(records, store_size=False))


def frame(block: bytes, flags: int = 0x60, largest: int = 0x40, stored: int = 0, end: bytes = bytes(4)) -> bytes:
    content = bytes(8) if flags & 8 else b""
    size = (len(block) | stored << 31).to_bytes(4, "little")
    checksum = b"sum!" if flags & 16 else b""
    return MAGIC + bytes([flags, largest]) + content + bytes([JAVA]) + size + block + checksum + end


GOOD = frame(compressed(RECORDS))


def read(batch: Batch) -> bytes:
    return without_codec(batch, memoryview(bytearray(b"\xaa" * BLOCK_BYTES)))


@given(st.binary(min_size=1, max_size=500), st.integers(1, 3 * BLOCK_BYTES // 500))
def test_the_codec_reads_what_is_written(part: bytes, times: int) -> None:
    assert codec.lz4_decode(written(memoryview(part * times))) == part * times


def test_bytes_that_do_not_shrink_are_stored_in_blocks_that_are_none_too_large() -> None:
    data = Random(0).randbytes(3 * BLOCK_BYTES)
    stored = written(memoryview(data))
    assert codec.lz4_decode(stored) == data
    assert len(stored) == len(MAGIC) + 3 + 3 * (4 + BLOCK_BYTES) + 4


def test_a_frame_that_is_written_is_like_that_of_a_java_producer() -> None:
    assert written(memoryview(RECORDS)) == GOOD


@given(st.binary(min_size=8, max_size=500), st.integers(1, BLOCK_BYTES // 500))
def test_a_java_producers_one_block_is_read_as_the_codec_reads_it(part: bytes, times: int) -> None:
    batch = framed(frame(compressed(part * times)))
    data = read(batch)
    plain = HEADER.pack(*batch.header._replace(attributes=0)) + codec.lz4_decode(batch.data[HEADER.size :])
    begins_like_a_size = int.from_bytes(compressed(part * times)[:4], "little") <= BLOCK_BYTES
    assert data == (batch.data if begins_like_a_size else plain)


def test_a_java_producers_repeated_bytes_are_read_without_the_codec() -> None:
    assert read(framed(GOOD))[HEADER.size :] == RECORDS == codec.lz4_decode(GOOD)


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.booleans())
def test_frames_of_a_producers_codec_are_read_as_the_codec_reads_them(values: list[bytes], append_time: bool) -> None:
    written = made([(NOW, b"key", value * 3 + RECORDS, []) for value in values], 7, 3)
    batch = only(patched(written, attributes=3 | append_time << 3))
    data = read(batch)
    header = Header._make(HEADER.unpack_from(data))
    assert header == batch.header._replace(attributes=append_time << 3)
    assert unpack(Batch(header, memoryview(data)), 0) == unpack(batch, 0)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(framed(GOOD, codec_bits=4), id="another codec"),
        pytest.param(framed(frame(RECORDS, stored=1)), id="stored"),
        pytest.param(framed(frame(compressed(bytes(BLOCK_BYTES + 1)))), id="too large"),
        pytest.param(framed(frame(compressed(RECORDS), flags=0x68)), id="the content has a size"),
        pytest.param(framed(frame(compressed(RECORDS), flags=0x74, end=bytes(8))), id="both have a checksum"),
        pytest.param(framed(frame(compressed(RECORDS), flags=0x40)), id="linked"),
        pytest.param(framed(frame(compressed(RECORDS), largest=0)), id="no largest block"),
        pytest.param(framed(frame(compressed(RECORDS), end=b"\x01\0\0\0\x11\0\0\0\0")), id="two blocks"),
        pytest.param(framed(frame(bytes(cramjam.lz4.compress_block(RECORDS)))), id="a size before the block"),
        pytest.param(framed(GOOD[4:]), id="no magic"),
        pytest.param(framed(b""), id="nothing"),
        *(pytest.param(framed(GOOD[:size]), id=f"cut after {size}") for size in (3, 6, 9, 30, len(GOOD) - 1)),
        pytest.param(framed(frame(b"\xff" * 40)), id="a wrong block"),
    ],
)
def test_all_other_frames_stay_as_they_are(batch: Batch) -> None:
    assert read(batch) == batch.data
