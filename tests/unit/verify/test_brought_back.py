"""The records that failbacks have brought back, in a verification of copies that SQL has made."""

import re
import uuid
from collections.abc import Collection, Sequence

import pytest

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import Header
from appliance.kafka.records.records import Record, body, placed
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.checkpoint import LaneCheckpoint, Mark
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix
from appliance.link.model.offset_map import Segment
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import CopyEnd, Position
from appliance.link.model.replicas import Replica
from appliance.link.model.segment_log import SegmentLog
from appliance.verify.partition_sql import PartitionSql, brought_back, sql_of

NAMING = Naming("replicator-orange", Suffix(after=".copy"), re.compile(".*"), re.compile(""))
REPLICA = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
CHANGES = [SqlChange(LinkSql(1, "SELECT 1 AS value FROM records"), "run", 1, 0)]


@pytest.mark.parametrize("is_present", [True, False])
async def test_case_491_what_came_from_a_copy_that_was_made_anew_has_passed_the_sql(
    is_present: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was compared as it is, though the link had copied it to the present copy: a right copy differed.
    copy_id = REPLICA.destination_id if is_present else uuid.UUID(int=5)
    held = Position(copy_id, REPLICA.source_id, 30, 0, copy_end=CopyEnd(40, 1, 7, 3))
    sql = await sql_after(LaneCheckpoint({REPLICA.copy: held}, mark=Mark(0, 8, 0)), monkeypatch)
    evaluated = [number for number in (6, 7, 8) if sql.has_passed(header(0, number))]
    assert evaluated == ([6] if is_present else [6, 7, 8])


async def test_case_681_what_was_brought_back_is_known_after_its_producers_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Only the newest producer id was known: what the failback before had brought back was evaluated, and differed.
    tail, ids = OffsetTail(10, 30, 20, 42), (REPLICA.destination_id, REPLICA.source_id)
    held = Position(*ids, 20, 0, copy_end=CopyEnd(42, 1, 7, 3), tail=tail)
    before = [Segment(*ids, OffsetTail(0, 8, 5, 14)), Segment(*ids, OffsetTail(5, 14, 9, 20))]
    sql = await sql_after(LaneCheckpoint({REPLICA.copy: held}, mark=Mark(0, 8, 0)), monkeypatch, before)
    passed = [offset for offset in (7, 8, 13, 14, 19, 20, 29, 30, 41, 42) if sql.has_passed(header(offset, 5))]
    assert passed == [7, 20, 29, 42]


async def sql_after(
    checkpoint: LaneCheckpoint, monkeypatch: pytest.MonkeyPatch, segments: Sequence[Segment] = ()
) -> PartitionSql:
    """The SQL of the partition, given what the only lane of the failbacks has left at the source."""

    class Log(SegmentLog):
        def segments(self, _: Partition) -> Sequence[Segment]:
            return segments

    async def read(maps: OffsetMaps, _: Collection[Partition]) -> None:
        maps._checkpoints, maps._logs, maps._lanes = (checkpoint,), (Log(),), {REPLICA.copy: 0}

    monkeypatch.setattr(OffsetMaps, "read", read)
    (sql,) = sql_of(CHANGES, [REPLICA], await brought_back(Unasked(), NAMING, [REPLICA])).values()
    return sql


class Unasked(KafkaCluster):
    """A cluster of which nothing is read."""

    def __init__(self) -> None:
        pass


def header(offset: int, producer_id: int) -> Header:
    """That of a batch of one record."""
    return placed([Record(offset, 1, body(None, b"1"))]).header._replace(producer_id=producer_id)
