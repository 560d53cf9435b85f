"""Records that take gigabytes in some form take no more memory than the bound wherever they are decoded."""

import contextlib
import struct
import zlib

import pytest
from aiokafka import codec
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from kio.schema.errors import ErrorCode

from appliance.audit.model.entries import log_range
from appliance.engine.model.ranges import Range
from appliance.errors import BatchCorrupt, PeerError
from appliance.kafka.client.fetch import FetchedPartition, committed_records
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.arrays.columns import columns_of
from appliance.kafka.records.batch import Batch, split
from appliance.kafka.records.decompression import decompress, decompress_records, inflate
from appliance.kafka.records.legacy import convert
from appliance.kafka.records.outgoing import outgoing
from appliance.kafka.records.rebuild import rebuild
from appliance.kafka.records.records import Record, pack, unpack
from appliance.kafka.records.varint import varint
from appliance.logs.model.stream import Stream, compiled
from appliance.sql.flight.row_reader import RowReader
from tests.support.batches import made, only, patched
from tests.support.memory import at_most
from tests.support.record_batches import outgoing_of, record
from tests.unit.sql.test_transform_rows import returned, rows_of

NOW = 1_700_000_000_000
ZSTD = 4


def large(offset: int, mebibytes: int = 40) -> bytes:
    """A batch with one record of zeros, a few KB long."""
    return made([(NOW, None, bytes(mebibytes * 2**20), [])], offset, ZSTD)


def of_headers(count: int) -> Batch:
    """A batch with one record of so many empty headers, two bytes each."""
    body = b"\1\1" + varint(count) + b"\0\1" * count
    return only(patched(pack([Record(0, NOW, body)], ZSTD)))


def test_case_953_a_negative_number_of_records_raises_no_bound() -> None:
    # The bytes that records need beside their own were taken off: a count below 0 added to the limit.
    bomb = only(patched(large(0, 100), records=-(2**31)))
    with at_most(200), pytest.raises(BatchCorrupt, match="takes more than"):
        decompress_records(bomb)


def test_case_954_a_record_of_a_million_headers_is_rebuilt_within_the_bound() -> None:
    # The library makes 70 bytes of the two of an empty header.
    batch = of_headers(20_000_000)
    with at_most(400):
        rebuilt = rebuild([batch], range(1))
        assert compiled(batch) is None
    assert rebuilt is not None
    (record,) = unpack(only(rebuilt.data), 0)
    assert len(record.body) > 40_000_000


@pytest.mark.parametrize("count", [300_000, 20_000_000])
def test_case_954_a_record_of_a_million_headers_is_too_much_for_sql(count: int) -> None:
    # They took 250 bytes each, and no statement needs them.
    (out,) = outgoing([of_headers(count)], 0)
    with at_most(600), pytest.raises(BatchCorrupt, match="offset 0 do not fit their lengths, count or memory"):
        columns_of([out])


def test_case_956_batches_that_are_large_together_are_read_a_few_at_a_time() -> None:
    batches = [only(large(offset)) for offset in range(20)]
    data = memoryview(b"".join(bytes(each.data) for each in batches))
    fetched = FetchedPartition(Partition("t", 0), ErrorCode.none, data, (), 20, None)
    with at_most(350):
        records, following = committed_records(fetched, 0)
        assert [each.offset for each in records] == [*range(following)]
        assert following < 3
        assert log_range(fetched.batches(), (), 0).following == following
        del records
        stream = Stream(0)
        stream.append(batches)
        assert 0 < len(stream.ahead(1000)) < 3


def legacy(mebibytes: int, offset: int = 0) -> bytes:
    """A message of magic 1 with one record of zeros, in gzip."""
    builder = LegacyRecordBatchBuilder(magic=1, compression_type=1, batch_size=2**30)
    assert builder.append(0, timestamp=NOW, key=None, value=bytes(mebibytes * 2**20)) is not None
    return offset.to_bytes(8) + bytes(builder.build())[8:]


def test_case_957_old_messages_keep_their_codec_when_they_become_batches() -> None:
    # All messages of a Fetch were kept uncompressed.
    some = b"".join(legacy(12, offset) for offset in range(20))
    with at_most(150):
        batches = [*split(some, convert)]
    assert [len(unpack(each, 0)[0].body) > 12 * 2**20 for each in batches] == [True] * 20
    with at_most(150), pytest.raises(BatchCorrupt, match="takes more than"):
        list(split(legacy(100), convert))


def test_case_955_an_old_message_whose_inside_is_damaged_ends_no_process() -> None:
    # The library took a length from the bytes, and read behind them: a segmentation fault (found by hypothesis).
    inside = bytearray(decompress(1, memoryview(legacy(0))[34:]))
    for at in range(len(inside)):
        for byte in (0x7F, 0x80, 0xFF):
            wrong = bytes([*inside[:at], byte, *inside[at + 1 :]])
            value = bytes(codec.gzip_encode(wrong))
            content = struct.pack(">bbqii", 1, 1, NOW, -1, len(value)) + value
            data = struct.pack(">qiI", 5, len(content) + 4, zlib.crc32(content)) + content
            with contextlib.suppress(BatchCorrupt):
                list(split(data, convert))


def test_case_957_what_the_positions_topics_hold_is_inflated_up_to_a_limit() -> None:
    data = zlib.compress(bytes(300 * 2**20))
    with at_most(200), pytest.raises(ValueError, match="takes more than"):
        inflate(data)
    assert inflate(zlib.compress(b"runs")) == b"runs"


def test_case_958_what_sql_makes_of_a_range_is_gathered_up_to_a_limit() -> None:
    # All of a range was kept in the codec of its first batch, often none, until its end.
    values = [bytes(1_000_000)] * 100
    whole = Range(
        Partition("orders", 0), 0, 100, outgoing_of([record(n, each) for n, each in enumerate(values)], 100, ZSTD), 0
    )
    bounds = [{"start": 0, "end": 100, "codec": 0, "limit": 2**20}]
    reader = RowReader(bounds, stops=True)
    confirmed = (each for rows in rows_of([whole]) for each in reader.read(returned(rows)))
    with at_most(300), pytest.raises(PeerError, match="is asked for again in parts"):
        list(confirmed)
