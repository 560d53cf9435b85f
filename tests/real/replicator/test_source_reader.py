"""The reader against a broker that ends sessions, breaks connections and denies partitions, all at random."""

import asyncio
import random

import pytest

from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.model.replicas import Replica
from appliance.replicator.read.buffer import Limits, ReadyQueue
from appliance.replicator.read.source_reader import SourceReader
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
        assert self._reader.stopped(self.ready) == []
        if self.ready.filled:
            self.ready.set()

    async def begin_one_again(self) -> None:
        """Give one partition up, for a moment or not at all, and read it from its position or from before."""
        replica = self._chance.choice(list(self.position))
        if self._chance.random() < 0.5:
            self._reader.forget([replica])
            await asyncio.sleep(self._chance.choice([0, 0.003]))
        back = self._chance.choice([0, 0, RECORDS])
        self._read(replica, max(0, self.position[replica] - back))


@pytest.mark.parametrize("seed", range(3))
async def test_with_any_fault_each_partition_is_read_in_order_without_a_hole(seed: int) -> None:
    chance, faults = random.Random(seed), []
    broker = FetchingBroker(6, random.Random(f"broker {seed}"))
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
            reader = SourceReader(source, lambda *fault: faults.append(fault))
            reading = Reading(broker, reader, chance)
            while sum(reading.position.values()) < ENOUGH or not all(broker.misbehaved.values()):
                await reading.take()
                if chance.random() < 0.05:
                    await reading.begin_one_again()
            reader.forget(list(reading.position))
            assert reader._budget.bytes == 0
            assert {task.get_name() for task in reader._tasks} == {"reader-router", "reader-0"}
            await reader.close()
    assert faults
