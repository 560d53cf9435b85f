import uuid
from dataclasses import replace

import pytest

from appliance.errors import PeerError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body, key_and_value
from appliance.link.model.checkpoint import LaneCheckpoint
from appliance.link.model.checkpoint_records import decode, encode_sql
from appliance.link.model.link_sql import LinkSql, SqlChange, history, link_sql, newest_change, restatement, salt_digest
from appliance.link.model.position import UNKNOWN, Position

A, B, RAW = LinkSql(1, "A"), LinkSql(2, "B"), LinkSql(3)
ORDERS = Partition("orders", 0)
HELD = Position(uuid.UUID(int=1), uuid.UUID(int=2), 50, 0)


def change(sql: LinkSql, run: str = "run", generation: int = 1, **offsets: int) -> SqlChange:
    return SqlChange(sql, run, generation, 0, {Partition(topic, 0): offset for topic, offset in offsets.items()})


def test_a_change_is_numbered_and_the_same_sql_is_none() -> None:
    assert link_sql([], "", "") == LinkSql()
    assert link_sql([], "A", "") == A
    assert link_sql([change(A)], "A", "") == A
    assert link_sql([change(A)], "A", salt_digest("salt")) == LinkSql(2, "A", salt_digest("salt"))
    assert link_sql([change(A), change(B)], "A", "") == LinkSql(3, "A")
    assert link_sql([change(A), change(B)], "", "") == RAW


def test_of_simultaneous_starts_that_holds_which_the_lanes_let_stay() -> None:
    older, newer = change(LinkSql(1, "B"), "x", 4), change(A, "a", 5)
    assert newest_change([older, newer]) == newest_change([newer, older]) == newer


def test_a_partition_has_the_sql_of_each_offset() -> None:
    changes = [change(A, orders=10), change(B, orders=30), change(RAW, orders=30)]
    assert history(changes, ORDERS) == [(0, LinkSql()), (10, A), (30, RAW)]
    assert history([], ORDERS) == [(0, LinkSql())]


def test_a_partition_that_came_later_has_the_sql_of_its_time_from_its_beginning() -> None:
    changes = [change(A), change(B, orders=30)]
    assert history(changes, ORDERS) == [(0, A), (30, B)]
    assert history([change(A), change(B)], ORDERS) == [(0, B)]


def test_a_partition_that_two_lanes_name_has_changed_once() -> None:
    changes = [change(A, orders=10), change(A, "later", 2, orders=40)]
    assert history(changes, ORDERS) == [(0, LinkSql()), (10, A)]


def test_case_461_only_the_lane_of_a_partition_says_from_where_on_a_change_holds_for_it() -> None:
    # The record of another lane, read first, said that the change holds for all of it.
    for changes in ([change(A, orders=10), change(A, other=5)], [change(A, other=5), change(A, orders=10)]):
        assert history(changes, ORDERS) == [(0, LinkSql()), (10, A)]
    assert history([change(A, "a", other=5), change(A, "b", 2, orders=10)], ORDERS) == [(0, LinkSql()), (10, A)]


def test_an_offset_below_an_earlier_change_replaces_it() -> None:
    assert history([change(A, orders=100), change(B, orders=60)], ORDERS) == [(0, LinkSql()), (60, B)]


def test_case_471_a_partition_that_goes_back_or_begins_anew_has_the_newest_sql_from_there_on() -> None:
    # Before, what was copied again counted as copied by the SQL of the first time, and a right copy differed.
    changes = [change(A, orders=10), change(B, orders=30)]
    anew = replace(HELD, source_id=uuid.UUID(int=3), next_offset=40)
    for held, offset, then in (
        ({ORDERS: HELD}, 5, [(0, LinkSql()), (5, B)]),
        ({ORDERS: HELD}, 20, [(0, LinkSql()), (10, A), (20, B)]),
        ({ORDERS: HELD}, 35, [(0, LinkSql()), (10, A), (30, B)]),
        ({ORDERS: anew}, 40, [(0, LinkSql()), (10, A), (30, B)]),
        ({ORDERS: replace(HELD, next_offset=UNKNOWN)}, 0, [(0, B)]),
        ({}, 0, [(0, B)]),
    ):
        made = restatement(changes, held, {ORDERS: replace(HELD, next_offset=offset)})
        assert made is not None
        assert history([changes[0], made], ORDERS) == then
        assert history([*changes, made, change(A, other=1)], ORDERS) == then


def test_a_partition_that_stays_or_goes_forward_says_nothing_of_the_sql() -> None:
    for offset in (50, 60, UNKNOWN):
        assert restatement([change(A)], {ORDERS: HELD}, {ORDERS: replace(HELD, next_offset=offset)}) is None
    assert restatement([], {}, {ORDERS: HELD}) is None


def test_a_checkpoint_keeps_every_change() -> None:
    checkpoint = LaneCheckpoint()
    for each in (change(A), change(B), change(A, "other"), change(B)):
        checkpoint.add(decode(encode_sql(each, 1)))
    assert len(checkpoint.sql) == 3


def test_an_older_release_refuses_a_change() -> None:
    key, value = key_and_value(encode_sql(change(A), 1).body)
    assert b'"version":2' in (value or b"")
    with pytest.raises(PeerError, match="version 1"):
        decode(Record(0, 1, body(key, (value or b"").replace(b'"version":2', b'"version":1'))))
