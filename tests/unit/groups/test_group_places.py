"""The places of groups, read from a topic that is made up."""

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from appliance.errors import PeerError
from appliance.groups.group_places import GroupPlaces
from appliance.kafka.client import compacted_log
from appliance.kafka.protocol.metadata import NOBODY, Metadata, Partition, Topic
from appliance.kafka.records.records import Record, body
from appliance.link.handle import Link
from appliance.link.model.mirror_records import MirrorCheckpoint, encode_checkpoint
from appliance.link.model.naming import Naming
from appliance.link.model.naming_policies import Suffix

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
        topic = Topic(naming.groups_topic, topic_id, False, (0,), epochs=(0,))
        return Metadata("grape", NOBODY, {}, {topic.name: topic})

    topic_id = uuid4()
    monkeypatch.setattr(compacted_log, "read_records", read_records)
    monkeypatch.setattr(compacted_log, "list_offsets", list_offsets)
    naming = Naming("replicator-b", Suffix(after=".copy"), re.compile(".*"), re.compile(""))
    cluster: Any = SimpleNamespace(metadata=metadata)
    places = GroupPlaces(Link(cluster, cluster, naming))
    for _ in range(2):  # the second round passed the record, and what its Fetch had brought with it
        with pytest.raises(PeerError):
            await places.refresh()
