import json
import uuid
from dataclasses import replace

import pytest

from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import split
from appliance.kafka.records.records import Record, body, key_and_value, unpack
from appliance.link.model.checkpoint import (
    Gap,
    LaneCheckpoint,
    LinkRecord,
    Mark,
    Owner,
    StartOffsets,
    Tombstone,
)
from appliance.link.model.checkpoint_records import (
    decode,
    encode_gap,
    encode_gap_tombstone,
    encode_layout,
    encode_link,
    encode_mark,
    encode_owner,
    encode_position,
    encode_sql,
    encode_starts,
    encode_state,
    encode_tombstone,
    newest,
    packed,
)
from appliance.link.model.copy_states import CopyState, StateRecord
from appliance.link.model.layout import Layout, LayoutRecord
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.position import NO_PLACE, CopyEnd, Position, SourcePlace, Trial

PARTITION = Partition("orders", 4)
POSITION = Position(uuid.UUID(int=1), uuid.UUID(int=2), 500, 3, 480, 9000, 1_700_000_000_000)
GAP = Gap(PARTITION, uuid.UUID(int=1), 500, 700, "deleted at the source", 1_700_000_000_000)
OWNER = Owner("run", "worker", "host", 1_700_000_000_000)
LINK = LinkRecord("source-cluster", 4, 5, 1_700_000_000_000)
STARTS = StartOffsets("orders", uuid.UUID(int=1), (SourcePlace(100, 3), NO_PLACE, SourcePlace(0, 0)))
LAYOUT = LayoutRecord(3, 8, 1_700_000_000_000, "me@host", "more cores", changing=True)
SQL = SqlChange(
    LinkSql(2, "SELECT 1", "5a17"),
    "run",
    7,
    9,
    {Partition("orders", 0): 12, Partition("orders", 4): 0, Partition("a", 1): 3},
)
STATE = StateRecord("orders", CopyState.PROMOTED, 9, "me@host", "the source is on fire", "c1", {"ends": [1, 2]})


def test_a_written_checkpoint_is_read_back_unchanged() -> None:
    assert decode(encode_position(PARTITION, POSITION, 1)) == (PARTITION, POSITION)
    assert decode(encode_gap(GAP, 1)) == GAP
    assert decode(encode_owner(3, OWNER, 1)) == (3, OWNER)
    written = replace(POSITION, copy_end=CopyEnd(900, 7, 4000, 2))
    assert decode(encode_position(PARTITION, written, 1)) == (PARTITION, written)
    tried = replace(POSITION, trial=Trial(500, 640, 2))
    assert decode(encode_position(PARTITION, tried, 1)) == (PARTITION, tried)
    assert decode(encode_tombstone(PARTITION, 1)) == Tombstone(PARTITION)
    assert decode(encode_mark(Mark(3, 4000, 2), 1)) == Mark(3, 4000, 2)
    assert decode(encode_link(LINK, 1)) == LINK
    assert decode(encode_starts(STARTS, 1)) == STARTS
    assert decode(encode_state(STATE, 1)) == STATE
    assert decode(encode_layout(3, LAYOUT, 1)) == LAYOUT
    assert decode(encode_gap_tombstone(GAP, 1)) == Tombstone(PARTITION, (500, GAP.found))
    changed = LINK.laid_out(Layout(7, 2, {PARTITION: 3}), 9)
    assert decode(encode_link(changed, 1)) == changed
    assert (changed.layout, changed.partitions) == (Layout(7, 2, {PARTITION: 3}), 9)


def test_releases_without_layouts_refuse_a_link_whose_layout_has_changed() -> None:
    for record in (encode_layout(3, LAYOUT, 1), encode_link(LINK.laid_out(Layout(7, 1), 9), 1)):
        assert json.loads(key_and_value(record.body)[1] or b"")["version"] == 3
    assert json.loads(key_and_value(encode_link(LINK, 1).body)[1] or b"") == {
        "version": 1,
        "source_cluster": "source-cluster",
        "lanes": 4,
        "partitions": 5,
        "made": LINK.made,
    }
    assert decode(encode_sql(SQL, 1)) == SQL


def test_a_position_of_an_older_release_is_read() -> None:
    key, value = key_and_value(encode_position(PARTITION, POSITION, 1).body)
    older = json.loads(value or b"")
    del older["copy_end"]
    assert decode(Record(0, 1, body(key, json.dumps(older).encode()))) == (PARTITION, POSITION)


def test_a_position_can_be_read_by_eye() -> None:
    key, value = key_and_value(encode_position(PARTITION, POSITION, 1).body)
    assert json.loads(key or b"") == {"topic": "orders", "partition": 4}
    assert json.loads(value or b"")["next_offset"] == 500


def test_of_two_runs_just_one_is_the_newer() -> None:
    later = Owner("a", "worker", "host", 0, generation=2)
    at_once = Owner("b", "worker", "host", 0, generation=2)
    assert later.is_newer_than(OWNER)
    assert not OWNER.is_newer_than(later)
    assert at_once.is_newer_than(later) != later.is_newer_than(at_once)


def test_starts_and_positions_that_older_releases_recorded_without_leader_epochs_are_read() -> None:
    value = b'{"version":1,"source_id":"%032x","offsets":[100,-1,0]}' % 1
    starts = StartOffsets("orders", uuid.UUID(int=1), tuple(SourcePlace(offset, -1) for offset in (100, -1, 0)))
    assert decode(Record(0, 1, body(b'{"start":"orders"}', value))) == starts
    assert json.loads(key_and_value(encode_starts(STARTS, 1).body)[1] or b"")["offsets"] == [100, -1, 0]


def test_only_a_layout_that_a_replicator_is_changing_has_what_older_releases_do_not_read() -> None:
    by_itself = replace(LAYOUT, run="1a2b3c")
    assert decode(encode_layout(0, by_itself, 1)) == by_itself
    value = json.loads(key_and_value(encode_layout(0, LAYOUT, 1).body)[1] or b"")
    assert value.keys() == {"version", "number", "lanes", "since", "by", "why", "changing"}


def test_the_newest_of_a_key_holds_and_every_gap_is_kept() -> None:
    checkpoint = LaneCheckpoint()
    later = Gap(PARTITION, uuid.UUID(int=1), 500, 800, "again", 1_700_000_000_001)
    for record in [
        encode_position(PARTITION, POSITION, 1),
        encode_gap(GAP, 2),
        encode_gap(later, 3),
        encode_position(PARTITION, POSITION.stop("why", 9), 4),
        encode_owner(3, OWNER, 5),
        encode_position(Partition("payments", 0), POSITION, 6),
        encode_tombstone(Partition("payments", 0), 7),
        encode_link(LINK, 8),
        encode_starts(STARTS, 9),
        encode_mark(Mark(3, 4000, 2), 10),
        encode_state(replace(STATE, state=CopyState.FAILING_OVER), 11),
        encode_state(STATE, 12),
    ]:
        checkpoint.add(decode(record))
    assert (checkpoint.link, checkpoint.starts, checkpoint.mark) == (LINK, {"orders": STARTS}, Mark(3, 4000, 2))
    assert checkpoint.states == {"orders": STATE}
    assert checkpoint.positions == {PARTITION: POSITION.stop("why", 9)}
    assert list(checkpoint.gaps.values()) == [GAP, later]
    assert checkpoint.owner == OWNER


def test_a_partition_that_stops_again_for_the_same_reason_has_been_stopped_all_along() -> None:
    stopped = POSITION.stop("why", 9)
    assert stopped.stop("why", 10) is stopped
    assert stopped.stop("else", 10).stopped_at == 10
    assert stopped.go_on() == POSITION
    assert POSITION.go_on() is POSITION


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"version":1}', b'{"version":2}', b"\xff"])
def test_a_foreign_record_is_not_taken_for_ours(value: bytes | None) -> None:
    with pytest.raises(PeerError):
        decode(Record(7, 1, body(b'{"topic":"orders","partition":4}', value)))


def test_a_reason_of_any_text_comes_back_as_it_was() -> None:
    stopped = POSITION.stop('a "quoted" reason, a \\ and an ä', 9)
    assert decode(encode_position(Partition("töpic\n", 4), stopped, 1)) == (Partition("töpic\n", 4), stopped)


def test_of_many_records_only_the_newest_of_each_key_is_decoded() -> None:
    rubbish = Record(0, 1, body(b'{"topic":"orders","partition":4}', b"never looked at"))
    assert list(newest([rubbish, encode_position(PARTITION, POSITION, 1)])) == [(0, (PARTITION, POSITION))]


def test_thousands_of_positions_are_written_as_batches_that_any_broker_takes() -> None:
    records = [encode_position(Partition("orders", number), POSITION.stop("why" * 50, 9), 1) for number in range(5_000)]
    batches = [(next(split(bytes(data))), count) for data, count in packed(records)]
    assert sum(count for _, count in batches) == len(records)
    assert all(batch.header.records == count for batch, count in batches)
    assert max(len(batch.data) for batch, _ in batches) < 128 * 1024
    unpacked = [record.body for batch, _ in batches for record in unpack(batch, 0)]
    assert unpacked == [record.body for record in records]


def test_a_release_that_knows_no_states_refuses_a_lane_that_has_one() -> None:
    # It accepts records of version 1 only, and reports any other as a newer appliance's.
    key, value = key_and_value(encode_state(STATE, 1).body)
    assert json.loads(key or b"") == {"state": "orders"}
    assert json.loads(value or b"")["version"] == 2
    later = json.dumps({**json.loads(value or b""), "version": 3}).encode()
    with pytest.raises(PeerError, match="holds version 3 at offset 7: of a newer release"):
        decode(Record(7, 1, body(key, later)))


def test_a_state_that_nobody_knows_is_refused() -> None:
    key, value = key_and_value(encode_state(STATE, 1).body)
    unheard = json.dumps({**json.loads(value or b""), "state": "elsewhere"}).encode()
    with pytest.raises(PeerError):
        decode(Record(7, 1, body(key, unheard)))


OTHERS = {
    "source_id": f'"{uuid.UUID(int=1).hex}"',
    "destination_id": f'"{uuid.UUID(int=1).hex}"',
    "next_offset": "5",
    "leader_epoch": "0",
    "records": "5",
    "bytes": "5",
    "timestamp": "1",
    "stopped": '""',
    "stopped_at": "-1",
    "copy_end": "null",
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("next_offset", value) for value in ('"5"', "NaN", "1e400", "1" + "0" * 400, "true", "null", "-7", "[5]")),
        *(("leader_epoch", "{}"), ("bytes", "null"), ("stopped", "[1]"), ("tail", "5")),
        *(("stopped_at", '"now"'), ("dropped", "{}"), ("rebuilt", "[]"), ("copy_end", "[1e400,0,0,0]")),
        ("unheard of", "[" * 100_000),
    ],
)
def test_case_1027_a_position_of_other_types_or_sizes_is_refused_with_its_offset(field: str, value: str) -> None:
    # Some ended the process with a traceback, the others were taken for a position.
    content = ",".join(f'"{name}":{each}' for name, each in {"version": "1", **OTHERS, field: value}.items())
    with pytest.raises(PeerError, match=r"holds something else at offset 7") as error:
        decode(Record(7, 1, body(b'{"topic":"orders","partition":4}', f"{{{content}}}".encode())))
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"topic":"orders","partition":1e400}', None),
        (b'{"topic":"orders","partition":-5}', None),
        (b'{"topic":"orders","partition":2147483648}', None),
        (b'{"topic":"\\ud800","partition":0}', None),
        (b'{"topic":"orders","partition":0,"gap":[1e400,0]}', None),
        (b"[" * 100_000, None),
        (b"7", None),
        (b'{"mark":1e400}', b'{"version":1,"producer_id":1,"epoch":1}'),
        (b'{"lane":0}', b'{"version":1,"run":5,"worker":"b","host":"c","since":1}'),
        (b'{"link":0}', b'{"version":1,"source_cluster":"c","lanes":0,"partitions":3,"made":1}'),
        (b'{"link":0}', b'{"version":1,"source_cluster":"c","lanes":1000000000,"partitions":3,"made":1}'),
        (b'{"layout":0}', b'{"version":3,"number":"a","lanes":3,"since":1,"by":"a"}'),
        (b'{"start":"p"}', b'{"version":1,"source_id":"%032x","offsets":[1e999]}' % 1),
        (b'{"state":"p"}', b'{"version":2,"state":"paused","since":"x","by":"a"}'),
        (b'{"state":"p"}', b'{"version":2,"state":"paused","since":1,"by":"a","details":7}'),
        (b'{"sql":1e400,"run":"a"}', b'{"version":2,"text":"","salt":"","generation":1,"since":1,"offsets":{}}'),
    ],
)
def test_case_1027_so_is_every_other_kind_of_record(key: bytes, value: bytes | None) -> None:
    # One forged record stopped every link that reads the topic.
    with pytest.raises(PeerError, match=r"holds something else at offset 7"):
        decode(Record(7, 1, body(key, value)))


def test_case_1027_words_that_were_typed_in_another_encoding_are_read_and_can_be_shown() -> None:
    typed = replace(STATE, why="f\udcfcr", details={"to": "\udcfc"})
    remembered = decode(encode_state(typed, 1))
    assert isinstance(remembered, StateRecord)
    assert remembered.why == r"f\udcfcr"
    assert remembered.details == {"to": "?"}
