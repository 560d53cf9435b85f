"""The places of groups, read from a topic that is made up."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import PeerError
from appliance.groups import group_places
from appliance.groups.group_places import GroupPlaces, _Log
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record, body
from appliance.link.model.mirror_records import MirrorCheckpoint, encode_checkpoint

COPY = Partition("orders.all", 0)


@pytest.mark.asyncio
async def test_case_782_no_place_behind_a_foreign_record_is_skipped_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    tombstone = Record(0, 0, body(b"\0\1g", None))
    topic: Sequence[Record] = [tombstone, encode_checkpoint(MirrorCheckpoint("g", COPY, 5, 150), 0)]

    async def read_records(*at: Any) -> tuple[Sequence[Record], int]:
        return topic[max(at[-1], 0) :], len(topic)

    async def list_offsets(_: Any, __: Any, partitions: Any, ___: Any) -> dict[Any, int]:
        return dict.fromkeys(partitions, len(topic))

    async def metadata(_: Any) -> Any:
        return SimpleNamespace(topics={"replicator-b.groups": SimpleNamespace(id=topic_id, error=ErrorCode.none)})

    topic_id = uuid4()
    monkeypatch.setattr(group_places, "read_records", read_records)
    monkeypatch.setattr(group_places, "list_offsets", list_offsets)
    places, log = GroupPlaces(SimpleNamespace(metadata=metadata), SimpleNamespace()), _Log()  # type: ignore[arg-type]
    for _ in range(2):  # the second round passed the record, and what its Fetch had brought with it
        with pytest.raises(PeerError):
            await places._read(log, "replicator-b.groups")
