"""Our own Produce codec, decoded by kio."""

import datetime
import struct
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.produce.v9 import ProduceRequest, ProduceResponse
from kio.schema.produce.v9.response import BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse
from kio.serial import entity_reader
from kio.static.primitive import i32, i32Timedelta

from appliance.errors import BrokerBusy, BrokerRefused, CopyRefused, Fenced, PartitionsUnavailable, PeerError
from appliance.kafka.client.produce import Copy, ProduceExchange, append, check_produced
from appliance.kafka.client.transactions import Producer, milliseconds
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.kafka.protocol.older import as_type, of_version
from appliance.kafka.records import batch
from appliance.kafka.records.records import Record, body, unpack
from tests.support.batches import made, only
from tests.support.scripted_broker import framed

PRODUCER = Producer("link.lane-3", 4000, 9)

sizes = st.dictionaries(
    st.tuples(st.sampled_from(["a", "orders.copy", "x" * 200]), st.integers(0, 500)), st.integers(1, 60), max_size=8
)


def parsed(frame: bytes, version: int = 9) -> ProduceRequest:
    content = memoryview(bytes(frame))[4:]
    kind = of_version(ProduceRequest, version)
    header, begins = entity_reader(kind.__header_schema__)(content, 0)
    assert (header.request_api_key, header.request_api_version, header.correlation_id) == (0, version, 77)
    assert header.client_id == "me"
    request, size = entity_reader(kind)(content, begins)
    assert begins + size == len(content) == struct.unpack(">i", frame[:4])[0]
    newest: ProduceRequest = as_type(request, ProduceRequest)
    return newest


def batch_of(records: int) -> bytes:
    return made([(1_700_000_000_000, b"k", b"v%d" % n, []) for n in range(records)], 500, 3)


@given(sizes, st.sampled_from([7, 8, 9]))
def test_a_frame_holds_each_copy_stamped_and_all_the_rest_untouched(
    wanted: dict[tuple[str, int], int], version: int
) -> None:
    copies = [Copy(Partition(*partition), batch_of(count), count * 7) for partition, count in wanted.items()]
    request = parsed(bytes(ProduceExchange(PRODUCER, copies, 2.5, version).frame(77, "me")), version)
    assert (request.transactional_id, request.acks, request.timeout) == ("link.lane-3", -1, milliseconds(2.5))
    found = {(str(t.name), int(p.index)): bytes(p.records or b"") for t in request.topic_data for p in t.partition_data}
    assert found.keys() == wanted.keys()
    for copy in copies:
        sent = only(found[copy.partition])
        batch.verify(sent)
        header = sent.header
        assert (header.base_offset, header.producer_id, header.producer_epoch) == (0, 4000, 9)
        assert (header.base_sequence, header.attributes) == (copy.sequence, 3 | batch.TRANSACTIONAL)
        assert sent.data[batch.HEADER_SIZE :] == memoryview(copy.data)[batch.HEADER_SIZE :]


def test_fetched_bytes_stay_as_they_are() -> None:
    original = batch_of(5)
    fetched = memoryview(original)
    ProduceExchange(PRODUCER, [Copy(Partition("t", 0), fetched, 0)], 1).frame(1, "me")
    assert bytes(fetched) == batch_of(5)


def test_one_batch_given_for_two_partitions_is_stamped_for_each() -> None:
    data = batch_of(2)
    request = parsed(
        bytes(
            ProduceExchange(PRODUCER, [Copy(Partition("t", 0), data, 5), Copy(Partition("t", 1), data, 6)], 1).frame(
                77, "me"
            )
        )
    )
    (topic,) = request.topic_data
    assert [only(bytes(p.records or b"")).header.base_sequence for p in topic.partition_data] == [5, 6]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.message_too_large, CopyRefused),
        (ErrorCode.invalid_record, CopyRefused),
        (ErrorCode.producer_fenced, Fenced),
        (ErrorCode.out_of_order_sequence_number, BrokerRefused),
        (ErrorCode.transaction_abortable, BrokerRefused),
        (ErrorCode.not_leader_or_follower, BrokerBusy),
        (ErrorCode.unknown_server_error, PartitionsUnavailable),
        (ErrorCode.corrupt_message, PartitionsUnavailable),
        (ErrorCode.invalid_request, PartitionsUnavailable),
    ],
)
def test_a_refusal_is_told_by_what_can_be_done_about_it(code: ErrorCode, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"produce to orders\.copy-4") as raised:
        check_produced(response(code))
    assert raised.type is error


@pytest.mark.parametrize(("named", "number"), [((7, 9), 7), ((-5,), None)])
def test_a_refusal_has_the_number_of_the_record_that_the_broker_names(
    named: tuple[int, ...], number: int | None
) -> None:
    with pytest.raises(CopyRefused) as raised:
        check_produced(response(ErrorCode.invalid_record, named=named))
    assert raised.value.number == number


def test_a_taken_batch_raises_no_error() -> None:
    check_produced(response(ErrorCode.none))


def test_case_683_a_batch_that_got_the_brokers_time_is_refused_where_its_times_matter() -> None:
    retimed = response(ErrorCode.none, datetime.datetime.now(datetime.UTC))
    assert check_produced(retimed) == {Partition("orders.copy", 4): 0}
    with pytest.raises(CopyRefused, match=r"orders\.copy has message\.timestamp\.type=LogAppendTime") as raised:
        check_produced(retimed, keeps_times=True)
    assert raised.value.partition == ("orders.copy", 4)
    assert check_produced(response(ErrorCode.none), keeps_times=True) == {Partition("orders.copy", 4): 0}


class Leader:
    """A broker whose topic takes batches of up to ``takes`` bytes."""

    def __init__(self, takes: int) -> None:
        self.takes, self.taken = takes, list[bytes]()
        self.sizes: list[int] = []

    async def call(self, request: ProduceRequest, *_: object) -> ProduceResponse:
        ((data,),) = ([bytes(p.records or b"") for p in topic.partition_data] for topic in request.topic_data)
        self.sizes.append(len(data))
        if len(data) > self.takes:
            return response(ErrorCode.message_too_large)
        self.taken += [each.body for each in unpack(only(data), 0)]
        return response(ErrorCode.none)


async def appended(leader: Leader, bodies: list[bytes]) -> None:
    async def broker(*_: object) -> Leader:
        return leader

    metadata = Metadata(
        "c", 1, {}, {"orders.copy": Topic("orders.copy", UUID(int=1), False, (1,) * 5, epochs=(0,) * 5)}
    )
    records = [Record(0, 1, body) for body in bodies]
    await append(SimpleNamespace(broker=broker), metadata, Partition("orders.copy", 4), records)  # type: ignore[arg-type]


@pytest.mark.asyncio
@pytest.mark.parametrize(("size", "count"), [(4096, 500), (32_000, 40), (10, 5_000)])
async def test_case_1032_appended_records_fit_into_batches_that_a_topic_takes(size: int, count: int) -> None:
    # One group with long metadata kept the checkpoints of all groups from being written.
    leader, bodies = Leader(1_048_588), [body(b"%d" % number, b"m" * size) for number in range(count)]
    await appended(leader, bodies)
    assert leader.taken == bodies
    assert max(leader.sizes) < 600_000


@pytest.mark.asyncio
async def test_case_1032_a_record_that_is_too_large_fails_alone_and_is_told() -> None:
    leader, bodies = Leader(10_000), [body(b"%d" % number, b"m" * 100) for number in range(300)]
    large = [body(b"large", b"m" * size) for size in (20_000, 2_000_000)]
    with pytest.raises(CopyRefused, match=r"produce to orders\.copy-4"):
        await appended(leader, [large[0], *bodies[:150], large[1], *bodies[150:]])
    assert leader.taken == bodies


def response(code: ErrorCode, log_append_time: Any = None, named: tuple[int, ...] = ()) -> ProduceResponse:
    partition = PartitionProduceResponse(
        index=4,
        error_code=code,
        base_offset=0,
        log_append_time=log_append_time,
        log_start_offset=0,
        record_errors=tuple(BatchIndexAndErrorMessage(batch_index=i32(number)) for number in named),
        error_message=None,
    )
    topic = TopicProduceResponse(name="orders.copy", partition_responses=(partition,))
    return ProduceResponse(responses=(topic,), throttle_time=i32Timedelta.parse(milliseconds(0)))


def test_case_1023_an_answer_that_leaves_a_partition_out_is_refused() -> None:
    # A copy that was left out ended the lane by a KeyError; that the positions were left out was not noticed.
    frame = bytearray(framed(response(ErrorCode.none), 7)[4:])
    answered, left_out = (Copy(Partition("orders.copy", number), batch_of(1), 0) for number in (4, 5))
    assert ProduceExchange(PRODUCER, [answered], 1).answer(frame, 7).responses
    with pytest.raises(PeerError, match=r"leaves out orders\.copy-5"):
        ProduceExchange(PRODUCER, [answered, left_out], 1).answer(frame, 7)
