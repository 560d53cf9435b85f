"""The reader against a broker that ends sessions, breaks connections and denies partitions, all at random."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import pytest
from kio.schema.errors import ErrorCode

from appliance.engine.problem_log import Notice
from appliance.engine.read.buffer import Limits, ReadyQueue
from appliance.engine.read.source_reader import SourceReader
from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.model.replicas import Replica
from appliance.settings.secret import Secret
from appliance.settings.values import ClusterSettings, SaslMechanism, SecurityProtocol, Side
from tests.support.fetching_broker import RECORDS, FetchingBroker
from tests.support.patience import PATIENCE

ENOUGH = 1_500 * RECORDS


async def as_is(host: str) -> tuple[str, ...]:
    return (host,)


class Reading:
    """A lane that takes everything, and sometimes gives a partition up or reads it again from an earlier offset."""

    def __init__(self, broker: FetchingBroker, reader: SourceReader, chance: random.Random) -> None:
        self.ready = ReadyQueue()
        self.position: dict[Replica, int] = {}
        self._reader = reader
        self._chance = chance
        for number in range(broker.partitions):
            replica = Replica(broker.topic, number, "copy", broker.topic_id, broker.topic_id)
            self._read(replica, 0)

    def _read(self, replica: Replica, position: int) -> None:
        self.position[replica] = position
        self._reader.read(replica, position, -1, self.ready, Limits())

    async def take(self) -> None:
        """Require that each partition's batches follow the previously taken ones."""
        await self.ready.wait()
        self.ready.clear()
        for chunk in self._reader.take(self.ready, 10_000):
            for batch in chunk.batches:
                assert batch.first_offset == self.position[chunk.replica]
                self.position[chunk.replica] = batch.next_offset
        assert self._reader.take_stops(self.ready) == []
        if self.ready.buffers_with_chunks:
            self.ready.set()

    async def begin_one_again(self) -> None:
        """Give one partition up, for a moment or not at all, and read it from its position or from before."""
        replica = self._chance.choice(list(self.position))
        if self._chance.random() < 0.5:
            self._reader.forget([replica])
            await asyncio.sleep(self._chance.choice([0, 0.003]))
        back = self._chance.choice([0, 0, RECORDS])
        self._read(replica, max(0, self.position[replica] - back))


@contextlib.asynccontextmanager
async def reading_from(broker: FetchingBroker, notice: Notice) -> AsyncIterator[SourceReader]:
    """A reader of that broker."""
    async with broker.running():
        settings = ClusterSettings(
            Side.SOURCE,
            "source",
            (broker.target,),
            "",
            Secret(""),
            SecurityProtocol.PLAINTEXT,
            SaslMechanism.PLAIN,
            None,
        )
        async with KafkaCluster(settings, as_is, "test") as source, asyncio.timeout(PATIENCE):
            reader = SourceReader(source, notice)
            try:
                yield reader
            finally:
                await reader.close()


@pytest.mark.parametrize("seed", range(3))
async def test_with_any_fault_each_partition_is_read_in_order_without_a_hole(seed: int) -> None:
    chance, faults = random.Random(seed), []
    broker = FetchingBroker(6, random.Random(f"broker {seed}"))
    async with reading_from(broker, lambda *fault: faults.append(fault)) as reader:
        reading = Reading(broker, reader, chance)
        while sum(reading.position.values()) < ENOUGH or not all(broker.misbehaved.values()):
            await reading.take()
            if chance.random() < 0.05:
                await reading.begin_one_again()
        reader.forget(list(reading.position))
        assert reader.budget.bytes == 0
        assert {task.get_name() for task in reader.router.tasks} == {"reader-router", "reader-0"}
    assert faults


@pytest.mark.parametrize(
    "code", [ErrorCode.unknown_server_error, ErrorCode.topic_authorization_failed, ErrorCode.invalid_request]
)
async def test_case_700_a_fetch_that_fails_for_a_reason_that_says_nothing_of_the_records_is_tried_again_and_told(
    code: ErrorCode,
) -> None:
    # The partition stopped until the operator acted, for one failed read of a source's tiered storage.
    open_faults: dict[str, ApplianceError | None] = {}
    broker = FetchingBroker(2, random.Random("broker"), refusals={0: code})
    async with reading_from(broker, open_faults.__setitem__) as reader:
        reading = Reading(broker, reader, random.Random("lane"))
        refused, other = reading.position
        subject = f"{refused.name} at its leader"
        while subject not in open_faults or reading.position[other] < 10 * RECORDS:
            await reading.take()
        assert str(open_faults[subject]) == f"fetch {refused.name} from offset 0: {code.name.upper()}"
        assert reading.position[refused] == 0
        broker.refusals.clear()
        while open_faults[subject] is not None or reading.position[refused] < 10 * RECORDS:
            await reading.take()


async def test_a_fetch_that_says_that_the_records_cannot_be_served_stops_its_partition_alone() -> None:
    broker = FetchingBroker(2, random.Random("broker"), refusals={0: ErrorCode.unsupported_compression_type})
    async with reading_from(broker, lambda *_: None) as reader:
        reading = Reading(broker, reader, random.Random("lane"))
        while not (stopped := reader.take_stops(reading.ready)):
            await asyncio.sleep(0.01)
        ((replica, reason),) = stopped
        assert (replica.partition, "UNSUPPORTED_COMPRESSION_TYPE" in str(reason)) == (0, True)
        while reading.position[list(reading.position)[1]] < 10 * RECORDS:
            await reading.take()
