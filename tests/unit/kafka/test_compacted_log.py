"""A compacted log, followed from one read to the next."""

import uuid
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.errors import PeerError
from appliance.kafka.client import compacted_log
from appliance.kafka.client.compacted_log import CompactedLog
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.kafka.records.records import Record, body

LOG = Partition("positions", 0)


class Topics:
    """A topic of records, as one broker shows it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.id = uuid.uuid4()
        self.records: list[Record] = []
        self.write(3)
        monkeypatch.setattr(compacted_log, "read_records", self.read_records)
        monkeypatch.setattr(compacted_log, "list_offsets", self.list_offsets)

    def write(self, count: int) -> None:
        end = len(self.records)
        self.records += [Record(end + number, 1, body(b"key", b"value")) for number in range(count)]

    async def metadata(self, _: object) -> Metadata:
        return Metadata("grape", 0, {}, {LOG[0]: Topic(LOG[0], self.id, False, (0,))} if self.records else {})

    async def read_records(self, *at: Any) -> tuple[Sequence[Record], int]:
        return self.records[max(at[-1], 0) :][:2], min(max(at[-1], 0) + 2, len(self.records))

    async def list_offsets(self, *_: object) -> dict[Any, int]:
        return {LOG: len(self.records)}


class Reader:
    """Everything that was taken since the log was forgotten last."""

    def __init__(self, topics: Topics) -> None:
        self.offsets: list[int] = []
        self.refused = -1
        cluster: Any = SimpleNamespace(metadata=topics.metadata)
        self.log = CompactedLog(cluster, LOG, self.take, self.offsets.clear)

    def take(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.offset == self.refused:
                raise PeerError("refused")
            self.offsets.append(record.offset)


async def test_each_read_brings_what_is_new_up_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics(monkeypatch)
    reader = Reader(topics)
    assert await reader.log.refresh("look")
    topics.write(4)
    assert await reader.log.refresh("look")
    assert reader.offsets == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("event", ["truncated", "recreated"])
async def test_a_log_that_was_truncated_or_recreated_is_forgotten_and_read_from_its_start(
    monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    topics = Topics(monkeypatch)
    reader = Reader(topics)
    await reader.log.refresh("look")
    if event == "truncated":
        del topics.records[2:]
    else:
        topics.id = uuid.uuid4()
    assert await reader.log.refresh("look")
    assert reader.offsets == [record.offset for record in topics.records]


async def test_without_its_topic_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics(monkeypatch)
    reader = Reader(topics)
    await reader.log.refresh("look")
    topics.records.clear()
    assert not await reader.log.refresh("look")
    assert not reader.offsets


async def test_a_refused_record_is_met_again_until_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(Topics(monkeypatch))
    reader.refused = 1
    for _ in range(3):
        with pytest.raises(PeerError):
            await reader.log.refresh("look")
    reader.refused = -1
    await reader.log.refresh("look")
    assert reader.offsets[-2:] == [1, 2]
