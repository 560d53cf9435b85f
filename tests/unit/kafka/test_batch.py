import pytest

from appliance.errors import BatchCorrupt
from appliance.kafka.records import batch
from tests.support.batches import made, only, patched, stamped

THREE = [(1_700_000_000_000 + n, b"key", b"value %d" % n, [("h", b"x")]) for n in range(3)]


def test_split_gives_each_whole_batch_and_leaves_a_cut_one() -> None:
    first, second = made(THREE, 10), made(THREE, 13)
    found = list(batch.split(first + second + first[:-1]))
    assert [b.header.base_offset for b in found] == [10, 13]
    assert [bytes(b.data) for b in found] == [first, second]


def test_split_leaves_a_cut_header() -> None:
    assert len(list(batch.split(made(THREE) + made(THREE)[:30]))) == 1


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_length_that_cannot_be_is_corrupt(length: int) -> None:
    with pytest.raises(BatchCorrupt):
        list(batch.split(patched(made(THREE), length=length)))


def test_verify_accepts_another_clients_crc() -> None:
    batch.verify(only(made(THREE, codec=3)))


@pytest.mark.parametrize("at", [21, 40, 60, 61, 90])
def test_verify_finds_any_changed_byte(at: int) -> None:
    damaged = bytearray(made(THREE))
    damaged[at] ^= 1
    with pytest.raises(BatchCorrupt, match="offset 0"):
        batch.verify(only(bytes(damaged)))


def test_restamp_makes_a_transactional_batch_and_leaves_the_records_bytes() -> None:
    original = made(THREE, 500, codec=2, leader_epoch=7, attributes=0x42)
    sent = stamped(original, 4000, 9, 77)
    batch.verify(sent)
    header = sent.header
    assert (header.base_offset, header.producer_id, header.producer_epoch, header.base_sequence) == (0, 4000, 9, 77)
    assert header.attributes == 0x12  # the codec stays, transactional is set, the delete horizon is gone
    before = only(original).header
    assert (header.base_timestamp, header.max_timestamp, header.records) == (
        before.base_timestamp,
        before.max_timestamp,
        3,
    )
    assert bytes(sent.data[61:]) == original[61:]


def test_sequences_go_on_at_0_after_2_to_the_31_minus_1() -> None:
    assert batch.next_sequence(0, 5) == 5
    assert batch.next_sequence(2**31 - 1, 1) == 0
    assert batch.next_sequence(2**31 - 3, 5) == 2


@pytest.mark.parametrize("following", [made(THREE, 10), made(THREE, 100), made(THREE, 101), made(THREE, -5)])
def test_case_1021_batches_whose_offsets_do_not_ascend_are_corrupt(following: bytes) -> None:
    # A position went back with them, and an overlapping batch was copied twice.
    found = batch.split(made(THREE, 100) + following)
    assert next(found).header.base_offset == 100
    with pytest.raises(BatchCorrupt, match="103 is the least possible"):
        next(found)
    with pytest.raises(BatchCorrupt, match="103 is the least possible"):
        batch.split_data(made(THREE, 100) + following, 0)


@pytest.mark.parametrize(
    "data", [made(THREE, -1), made(THREE, 2**63 - 2), patched(made(THREE, 100), last_offset_delta=-1)]
)
def test_case_1021_a_batch_whose_own_offsets_cannot_be_is_corrupt(data: bytes) -> None:
    # It moved a position back, or was copied twice.
    with pytest.raises(BatchCorrupt, match="of the offsets"):
        list(batch.split(data))
    with pytest.raises(BatchCorrupt, match="of the offsets"):
        batch.split_data(data, 0)


def test_case_1021_holes_and_a_batch_that_begins_before_the_position_are_read() -> None:
    data = made(THREE, 98) + patched(made(THREE, 110), records=0) + made(THREE, 2**40)
    assert [each.header.base_offset for each in batch.split(data, None, 2**40)] == [98, 110, 2**40]
    found, following = batch.split_data(data, 99, 2**40)
    assert ([each.header.base_offset for each in found], following) == ([98, 110, 2**40], 2**40 + 3)
    assert batch.split_data(made(THREE, 98), 200)[1] == 200


@pytest.mark.parametrize("count", [0, -1])
def test_case_1022_an_empty_batch_beyond_the_stable_end_is_corrupt(count: int) -> None:
    # The position jumped over all that the log would hold.
    data = patched(made(THREE, 2**62), records=count)
    with pytest.raises(BatchCorrupt, match="beyond the log's stable end, 100"):
        list(batch.split(data, None, 100))
    with pytest.raises(BatchCorrupt, match="beyond the log's stable end, 100"):
        batch.split_data(data, 0, 100)
    assert batch.split_data(data, 0, -1)[1] > 2**62  # a broker that does not tell it
