import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.kafka.records import rebuild
from appliance.kafka.records.batch import NO_END
from appliance.kafka.records.records import Record, pack, unpack
from tests.support.batches import made, only, patched, stamped

NOW = 1_700_000_000_000
field = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=3)
rows = st.lists(st.tuples(st.integers(-1, 2**45), field, field, headers), min_size=1, max_size=8)


def test_a_header_key_that_is_not_utf_8_is_kept_as_it_is() -> None:
    body = b"\x01\x02v" + b"\x02" + b"\x04\xff\xfe" + b"\x02x"  # null key, value v, one header
    batch = stamped(pack([Record(0, NOW, body)], 0))
    rebuilt = rebuild.rebuild([batch, batch], range(NO_END))
    assert rebuilt is not None
    assert [record.body for record in unpack(stamped(rebuilt.data), 0)] == [body, body]


def test_case_1_a_first_timestamp_of_minus_1_is_not_replaced_by_the_next_one() -> None:
    records = [Record(0, -1, b"\x01\x01\x00"), Record(1, NOW, b"\x01\x01\x00")]
    batch = stamped(pack(records, 0))
    rebuilt = rebuild.rebuild([batch], range(NO_END))
    assert rebuilt is not None
    assert unpack(stamped(rebuilt.data), 0) == records


@given(st.lists(rows, min_size=1, max_size=4), st.sampled_from([0, 1, 2, 3, 4]), st.booleans(), st.data())
def test_the_compiled_way_and_the_plain_way_write_the_same_records(
    parts: list[list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]]]]],
    codec: int,
    append_time: bool,
    data: st.DataObject,
) -> None:
    batches, offset = [], 0
    for part in parts:
        batch = made(part, offset, codec)
        if append_time:
            batch = patched(batch, attributes=codec | 0x08, max_timestamp=NOW)
        batches.append(only(batch))
        offset += len(part)
    position = data.draw(st.integers(0, offset))
    wanted = range(position, data.draw(st.integers(position, offset)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuild, "_AT_ONCE", data.draw(st.integers(1, 10)))
        compiled, plain = rebuild._compiled(batches, wanted), rebuild._plain(batches, wanted)
    if compiled is None or plain is None:
        assert compiled is plain
        return
    assert compiled._replace(data=b"", memory=0) == plain._replace(data=b"", memory=0)
    one, other = (stamped(r.data) for r in (compiled, plain))
    assert unpack(one, 0) == unpack(other, 0)
    assert one.header.max_timestamp == other.header.max_timestamp
    assert one.header.attributes == other.header.attributes
