"""The fetcher of one leader: what it does with an answer."""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance.engine.read.buffer import Limits, ReadyQueue
from appliance.engine.read.fetcher import Fetcher
from appliance.engine.read.source_reader import SourceReader
from appliance.errors import ApplianceError, Unreachable
from appliance.kafka.client.fetch import FetchedPartition
from appliance.kafka.protocol.metadata import Metadata, Partition, Topic
from appliance.kafka.records.batch import TRANSACTIONAL, Header
from appliance.link.model.replicas import Replica
from tests.support.batches import made
from tests.support.patience import PATIENCE


class Asked:
    """Notes the producer ids of the batches whose writers are looked up."""

    def __init__(self) -> None:
        self.producers: list[int] = []

    async def learn(self, headers: Sequence[Header]) -> None:
        self.producers += [header.producer_id for header in headers]


async def test_case_888_who_wrote_what_is_before_damaged_bytes_is_looked_up_too() -> None:
    # Between identical names nothing of the Fetch was: "nobody has looked up producer id 7".
    batches = [made([(0, None, b"x", [])], n, attributes=TRANSACTIONAL, producer_id=n + 7) for n in range(3)]
    damaged = batches[2][:8] + bytes(4) + batches[2][12:]
    nobody: Any = None
    origins: Any = Asked()
    fetcher = Fetcher(1, nobody, nobody, nobody, nobody, origins)
    records = memoryview(b"".join([*batches[:2], damaged]))
    await fetcher.learn(origins, [FetchedPartition(Partition("orders", 0), ErrorCode.none, records, (), 0, None)])
    assert origins.producers == [7, 8]


SOURCE, COPY = uuid.UUID(int=1), uuid.UUID(int=2)


class Leading:
    """A source whose broker 1 fails and whose others bring nothing; ``leaders`` names each topic's leader."""

    side = "source"

    def __init__(self, error: Exception, **leaders: int) -> None:
        self.error = error
        self.leaders = leaders

    async def metadata(self, _: Any) -> Metadata:
        topics = {name: Topic(name, SOURCE, False, (node,), epochs=(0,)) for name, node in self.leaders.items()}
        return Metadata("orange", 1, {}, topics)

    async def broker(self, node: int, _: str) -> Any:
        if node == 1:
            raise self.error
        await asyncio.Event().wait()


@pytest.mark.parametrize("error", [Unreachable("broker 1 does not answer"), RuntimeError("a defect")], ids=repr)
@pytest.mark.parametrize("others", [{}, {"leaderless": -1}], ids=repr)
async def test_case_932_the_problem_of_a_broker_ends_once_others_lead_all_that_it_had_led(
    error: Exception, others: dict[str, int]
) -> None:
    # It stayed open beside a partition without a leader, and for ever after a defect.
    source: Any = Leading(error, hidden=1, **others)
    told = asyncio.Queue[ApplianceError | None]()
    reader = SourceReader(source, lambda subject, e: told.put_nowait(e) if subject == "source broker 1" else None)
    ready = ReadyQueue()
    for name in source.leaders:
        reader.read(Replica(name, 0, name, SOURCE, COPY), 0, -1, ready, Limits())
    async with asyncio.timeout(PATIENCE):
        assert str(error) in str(await told.get())
        source.leaders["hidden"] = 2
        assert await told.get() is None
    await reader.close()
