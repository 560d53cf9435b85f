"""The requests and batches of a producer without transactions, read by kio and by the appliance."""

from kio.schema.produce.v9 import ProduceRequest
from kio.serial import entity_reader

from appliance.kafka.records.batch import verify
from bench.lib.raw_batches import RawProduce, without_producer
from tests.support.batches import Written, made, only

RECORDS: list[Written] = [(1_700_000_000_000, b"k", b"v%d" % number, []) for number in range(3)]


def test_the_request_has_no_transactional_id_and_each_partitions_batch() -> None:
    batches = [(0, b"first"), (3, b"other" * 100)]
    content = memoryview(RawProduce("orders.copy", batches).frame(77, "me"))[4:]
    header, begins = entity_reader(ProduceRequest.__header_schema__)(content, 0)
    request, size = entity_reader(ProduceRequest)(content, begins)
    assert begins + size == len(content)
    assert header.correlation_id == 77
    assert (request.transactional_id, request.acks) == (None, -1)
    (topic,) = request.topic_data
    assert topic.name == "orders.copy"
    assert [(each.index, each.records) for each in topic.partition_data] == batches


def test_a_batch_keeps_its_records_and_loses_its_producer() -> None:
    batch = only(made(RECORDS, base_offset=500, producer_id=7, producer_epoch=1, base_sequence=30, attributes=0x10))
    raw = only(without_producer(batch))
    verify(raw)
    assert bytes(raw.data[61:]) == bytes(batch.data[61:])
    header = raw.header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (header.attributes, header.records) == (0, 3)
