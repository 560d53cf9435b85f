"""The records that failbacks have brought back, in a verification of copies that SQL has made."""

import re
import uuid
from typing import Any

import pytest

from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Metadata, Topic
from appliance.kafka.records.records import Record, body, placed
from appliance.link.model.checkpoint import LaneCheckpoint, Mark
from appliance.link.model.link_sql import LinkSql, SqlChange
from appliance.link.model.naming import Naming
from appliance.link.model.position import CopyEnd, Position
from appliance.link.model.replicas import Replica
from appliance.verify import brought_back
from appliance.verify.partition_sql import sql_of

NAMING = Naming("replicator-orange", "copy", re.compile(".*"), re.compile(""))
REPLICA = Replica("orders", 0, "orders.copy", uuid.UUID(int=1), uuid.UUID(int=2))
CHANGES = [SqlChange(LinkSql(1, "SELECT 1 AS value FROM records"), "run", 1, 0)]


class Source(KafkaCluster):
    """A cluster with the positions topic of a failback of one lane."""

    def __init__(self) -> None:
        pass

    async def metadata(self, names: Any) -> Metadata:
        return Metadata("", 0, {}, {name: Topic(name, uuid.UUID(int=9), False, (1,)) for name in names})


@pytest.mark.parametrize("is_present", [True, False])
async def test_case_491_what_came_from_a_copy_that_was_made_anew_has_passed_the_sql(
    is_present: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was compared as it is, though the link had copied it to the present copy: a right copy differed.
    copy_id = REPLICA.destination_id if is_present else uuid.UUID(int=5)
    held = Position(copy_id, REPLICA.source_id, 30, 0, copy_end=CopyEnd(40, 1, 7, 3))
    checkpoint = LaneCheckpoint({REPLICA.copy: held}, mark=Mark(0, 8, 0))

    async def peek_checkpoints(*_: Any) -> list[LaneCheckpoint]:
        return [checkpoint]

    monkeypatch.setattr(brought_back, "peek_checkpoints", peek_checkpoints)
    (sql,) = sql_of(CHANGES, [REPLICA], await brought_back.brought_back(Source(), NAMING, [REPLICA])).values()
    some = placed([Record(0, 1, body(None, b"1"))])
    headers = [some.header._replace(producer_id=number) for number in (6, 7, 8)]
    evaluated = [header.producer_id for header in headers if sql.has_passed(header)]
    assert evaluated == ([6] if is_present else [6, 7, 8])
