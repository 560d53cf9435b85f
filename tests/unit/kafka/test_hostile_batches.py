"""No bytes of a broker make anything but our own errors, and none take more memory than the bound."""

import contextlib
import struct
import zlib
from collections.abc import Callable

from aiokafka import codec
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import ApplianceError
from appliance.kafka.records.arrays.columns import columns_of
from appliance.kafka.records.batch import HEADER, split
from appliance.kafka.records.committed import committed
from appliance.kafka.records.decompression import within_memory
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.lz4 import frame
from appliance.kafka.records.outgoing import outgoing
from appliance.kafka.records.records import unpack
from appliance.logs.model.stream import Stream, compiled, plain
from tests.support.batches import made, only, patched

NOW = 1_700_000_000_000
COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: lambda data: bytes(codec.gzip_encode(data)),
    2: lambda data: bytes(codec.snappy_encode(data)),
    3: lambda data: bytes(codec.lz4_encode(data)),
    4: lambda data: bytes(codec.zstd_encode(data)),
    5: bytes,
}
BATCH = made([(NOW, b"key", b"value", [("h", b"1")]), (NOW + 1, None, b"v" * 99, []), (NOW + 2, b"k", None, [])])
RECORDS = BATCH[HEADER.size :]


def damaged(data: bytes, faults: list[tuple[int, int]], cut: int) -> bytes:
    """The bytes with some of them replaced, and without the last ones."""
    found = bytearray(data)
    for at, byte in faults:
        if found:
            found[at % len(found)] = byte
    return bytes(found[: max(0, len(found) - cut)])


FAULTS = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4)
CUTS = st.sampled_from([0, 0, 0, 1, 7, 60])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "records": st.sampled_from([-(2**31), -1, 0, 1, 2, 4, 33, 2**20, 2**31 - 1]),
        "last_offset_delta": st.sampled_from([-(2**31), -1, 0, 1, 9, 2**31 - 1]),
        "base_offset": st.sampled_from([-(2**63), -1, 0, 5, 2**62]),
        "base_timestamp": st.sampled_from([-(2**63), -1, 0, 2**63 - 1]),
        "max_timestamp": st.sampled_from([-(2**63), -1, 0, 2**63 - 1]),
        "attributes": st.integers(0, 127),
    },
)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A batch of magic 2, damaged outside or inside of its compression, with a correct CRC."""
    bits = draw(st.sampled_from([*COMPRESS]))
    inside = draw(st.one_of(st.just(RECORDS), st.binary(max_size=80).map(lambda more: RECORDS + more)))
    inside = damaged(inside * draw(st.sampled_from([1, 1, 2, 3000])), draw(FAULTS), draw(CUTS))
    compress = draw(st.sampled_from([COMPRESS[bits], *([lambda data: frame(memoryview(data))] if bits == 3 else [])]))
    outside = damaged(compress(inside), draw(st.one_of(st.just([]), FAULTS)), draw(CUTS))
    data = BATCH[: HEADER.size] + outside
    return patched(data, **({"attributes": bits} | draw(FIELDS) | {"length": len(data) - 12}))


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """An entry of magic 0 or 1, damaged, with a correct CRC."""
    magic = draw(st.sampled_from([0, 1]))
    bits = draw(st.sampled_from([0, 1, 2, 3] if magic else [0, 1, 2]))
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=bits, batch_size=2**20)
    for number in range(draw(st.sampled_from([1, 3, 300]))):
        builder.append(number, timestamp=NOW, key=b"key", value=None if number == 1 else b"value")
    data = bytes(builder.build())
    first = damaged(data[16 : 12 + struct.unpack_from(">i", data, 8)[0]], draw(FAULTS), draw(CUTS))
    return struct.pack(">qiI", draw(st.sampled_from([-1, 0, 100])), len(first) + 4, zlib.crc32(first)) + first


def read_in_every_way(data: bytes, position: int, limit: int) -> None:
    """Read a Fetch as the replicator, the SQL in flight and the verification do."""
    with contextlib.suppress(ApplianceError):
        found = list(committed(split(data, convert), []))
        within_memory(found, 0)
        for each in found:
            with contextlib.suppress(ApplianceError):
                plain(each)
            compiled(each)
            stream = Stream(position)
            with contextlib.suppress(ApplianceError):
                stream.append([each])
                stream.ahead(3)
    with contextlib.suppress(ApplianceError):
        outs = list(outgoing(committed(split(data, convert), []), position, limit))
        with contextlib.suppress(ApplianceError):
            assert len(columns_of(outs)) == sum(out.records for out in outs)
        for out in outs:
            if not out.raw:
                assert len(unpack(only(out.data), 0)) == out.records == len(out.offsets)


def test_case_955_a_time_that_is_larger_than_any_number_is_read_as_by_java() -> None:
    # Its partition stopped by a foreign error, and nobody knew where (found by hypothesis).
    late = patched(made([(NOW, None, b"v", []), (NOW + 1, None, b"v", [])]), base_timestamp=2**63 - 1)
    (sent,) = outgoing(split(late), 1)
    assert [record.timestamp for record in unpack(only(bytes(sent.data)), 0)] == [-(2**63)]


@given(
    fetched=st.lists(st.one_of(batches(), messages()), min_size=1, max_size=4),
    tail=st.binary(max_size=30),
    position=st.sampled_from([0, 1, 2, 5]),
    limit=st.sampled_from([150, 2**31 - 1]),
)
def test_no_batch_makes_anything_but_our_own_errors(
    fetched: list[bytes], tail: bytes, position: int, limit: int
) -> None:
    read_in_every_way(b"".join(fetched) + tail, position, limit)
