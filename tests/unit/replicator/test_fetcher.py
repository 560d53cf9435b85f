"""The fetcher of one leader: what it does with an answer."""

from collections.abc import Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from appliance.kafka.client.fetch import Fetched
from appliance.kafka.records.batch import TRANSACTIONAL, Header
from appliance.replicator.read.fetcher import Fetcher
from tests.support.batches import made


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
    await fetcher._learn(origins, [Fetched(("orders", 0), ErrorCode.none, records, (), 0, None)])
    assert origins.producers == [7, 8]
