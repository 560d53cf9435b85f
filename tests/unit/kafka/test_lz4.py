"""A frame's one block is read as the codec reads it, and everything else is left to the codec."""

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.kafka.batch import HEADER, Batch, Header
from appliance.kafka.lz4 import BLOCK_BYTES, without_codec
from appliance.kafka.records import unpack
from tests.support.batches import made, only, patched

MAGIC = b"\x04\x22\x4d\x18"
RECORDS = b"a record's bytes, which repeat, which repeat" * 9
NOW = 1_700_000_000_000


def framed(frame: bytes, codec: int = 3) -> Batch:
    """A batch whose records are the frame; of its header only the codec matters here."""
    header = only(made([(NOW, None, b"x", [])])).header._replace(attributes=codec)
    return Batch(header, memoryview(HEADER.pack(*header) + frame))


def frame(
    records: bytes = RECORDS, flags: int = 0x60, largest: int = 0x40, stored: int = 0, end: bytes = bytes(4)
) -> bytes:
    block = records if stored else bytes(cramjam.lz4.compress_block(records, store_size=False))
    content = len(records).to_bytes(8, "little") if flags & 8 else b""
    size = (len(block) | stored << 31).to_bytes(4, "little")
    checksum = b"sum!" if flags & 16 else b""
    return MAGIC + bytes([flags, largest]) + content + b"\0" + size + block + checksum + end


def read(batch: Batch) -> bytes:
    return without_codec(batch, memoryview(bytearray(b"\xaa" * BLOCK_BYTES)))


@pytest.mark.parametrize("flags", [0x60, 0x70])
@pytest.mark.parametrize("largest", [0x40, 0x70])
@given(st.binary(min_size=1, max_size=500), st.integers(1, BLOCK_BYTES // 500))
def test_one_block_is_read_with_and_without_its_own_checksum(flags: int, largest: int, part: bytes, times: int) -> None:
    batch = framed(frame(part * times, flags, largest))
    assert read(batch) == HEADER.pack(*batch.header._replace(attributes=0)) + part * times


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=8), st.booleans())
def test_what_a_producers_codec_wrote_is_read_as_the_codec_reads_it(values: list[bytes], append_time: bool) -> None:
    compressed = patched(made([(NOW, b"key", value * 3, []) for value in values], 7, 3))
    batch = only(patched(compressed, attributes=3 | append_time << 3))
    data = read(batch)
    assert unpack(Batch(Header._make(HEADER.unpack_from(data)), memoryview(data)), 0) == unpack(batch, 0)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(framed(frame(), codec=4), id="another codec"),
        pytest.param(framed(frame(stored=1)), id="stored"),
        pytest.param(framed(frame(bytes(BLOCK_BYTES + 1))), id="too large"),
        pytest.param(framed(frame(flags=0x68)), id="the content has a size"),
        pytest.param(framed(frame(flags=0x74, end=bytes(8))), id="both have a checksum"),
        pytest.param(framed(frame(flags=0x64, end=bytes(8))), id="the content has a checksum"),
        pytest.param(framed(frame(flags=0x40)), id="linked"),
        pytest.param(framed(frame(end=b"\x01\0\0\0\x11\0\0\0\0")), id="two blocks"),
        pytest.param(framed(frame()[4:]), id="no magic"),
        pytest.param(framed(b""), id="nothing"),
        *(pytest.param(framed(frame()[:size]), id=f"cut after {size}") for size in (3, 6, 9, 30, len(frame()) - 1)),
        pytest.param(framed(frame()[:11] + b"\xff" * (len(frame()) - 15) + bytes(4)), id="a wrong block"),
    ],
)
def test_whatever_else_there_is_stays_as_it_is(batch: Batch) -> None:
    assert read(batch) == batch.data
