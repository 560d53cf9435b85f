"""Links with identical names between all of some clusters, in both directions."""

import asyncio
import contextlib
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.settings.values import TopicNaming
from testbed.cluster import Cluster
from tests.support.administration import make_topic
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.rows import Row, end


@dataclass(slots=True)
class Mesh:
    """Clusters by name, and a link from each to each other one."""

    clusters: Mapping[str, Cluster]
    tag: str
    _written: dict[str, Counter[bytes]] = field(default_factory=dict)

    @property
    def links(self) -> Iterator[Pair]:
        """The links, each as a pair of its source and its destination."""
        for (source, there), (destination, here) in itertools.permutations(self.clusters.items(), 2):
            link = f"{source}-to-{destination}-{self.tag}"
            yield Pair(there, here, self.tag, TopicNaming.IDENTICAL, link=link)

    def topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        """Create a topic in each cluster."""
        full = f"{name}-{self.tag}"
        for cluster in self.clusters.values():
            make_topic(cluster, NewTopic(full, partitions, 1, config=configs))
        return full

    def produce(
        self, name: str, topic: str, count: int, partition: int = 0, *, abort: bool | None = None, to: str = ""
    ) -> None:
        """Produce numbered records in a cluster: in a transaction that is committed or aborted, or in none.

        They are written ``to`` a topic of that cluster from which another link brings them.
        """
        further = {} if abort is None else {"transactional.id": f"app-{name}-{self.tag}-{topic}"}
        producer = Producer({**self.clusters[name].client_configuration(), "linger.ms": 5, **further})
        if abort is not None:
            producer.init_transactions(PATIENCE)
            producer.begin_transaction()
        first = sum(self._written.get(f"{topic}-{partition}", Counter()).values())
        for number in range(first, first + count):
            value = json.dumps([name, number, "aborted" if abort else "kept"]).encode()
            producer.produce(to or topic, value, partition=partition)
            if not abort:
                self._written.setdefault(f"{topic}-{partition}", Counter())[value] += 1
        if abort is None:
            assert producer.flush(PATIENCE) == 0
        elif abort:
            assert producer.flush(PATIENCE) == 0
            producer.abort_transaction(PATIENCE)
        else:
            producer.commit_transaction(PATIENCE)

    @contextlib.asynccontextmanager
    async def engines(self) -> AsyncIterator[list[Engine]]:
        """An engine for each link."""
        async with contextlib.AsyncExitStack() as stack:
            yield [await stack.enter_async_context(link.engine()) for link in self.links]

    async def copied(self, topic: str, partitions: int = 1) -> None:
        """Copy everything, by links that start now, and require that every cluster has it."""
        async with self.engines() as engines:
            await begin(engines)
        self.require_all(topic, partitions)

    def is_complete(self, topic: str, partitions: int) -> bool:
        """True when every cluster has as many records as were produced, or more."""
        wanted = sum(sum(self._written.get(f"{topic}-{number}", Counter()).values()) for number in range(partitions))
        rows = [next(self.links).rows(cluster, topic, partitions) for cluster in self.clusters.values()]
        return all(sum(map(len, each)) >= wanted for each in rows)

    def require_all(self, topic: str, partitions: int = 1) -> None:
        """Require that every cluster holds each record once, and each origin's records in their order."""
        for name, cluster in self.clusters.items():
            rows = next(self.links).rows(cluster, topic, partitions)
            for partition in range(partitions):
                found = [value_of(row) for row in rows[partition]]
                assert Counter(found) == self._written.get(f"{topic}-{partition}", Counter()), name
                for origin in self.clusters:
                    numbers = [number for where, number, _ in map(json.loads, found) if where == origin]
                    assert numbers == sorted(numbers), f"{origin} in {name}"


def value_of(row: Row) -> bytes:
    """The value of a record."""
    assert row[2] is not None
    return row[2]


async def copy_all(engines: Sequence[Engine]) -> None:
    """Copy by all links until every position stands at the end of its partition, and stays there."""

    async def settled() -> None:
        before: dict[tuple[str, Partition], int] = {}
        while not ((now := _ends(engines)) == before and all(_are_at(engine, now) for engine in engines)):
            before = now
            await asyncio.sleep(0.1)

    stopping = asyncio.Event()
    runners = [runner for engine in engines for runner in engine.runners]
    running = [asyncio.create_task(runner.run(stopping)) for runner in runners]
    try:
        async with asyncio.timeout(PATIENCE):
            await settled()
    finally:
        stopping.set()
        for runner in runners:
            runner.ready.set()
        await asyncio.gather(*running)


async def begin(engines: Sequence[Engine]) -> None:
    """Prepare links that have just started, and copy all that there is."""
    for engine in engines:
        await engine.prepare()
    await copy_all(engines)


async def until_decided(engines: Sequence[Engine]) -> None:
    """Wait until no transaction is open in the links' positions: a commit is answered before it can be read."""
    for engine in engines:
        assert await OffsetMaps(engine.destination, engine.pair.naming, settled=True).refresh([]) == {}


def _ends(engines: Sequence[Engine]) -> dict[tuple[str, Partition], int]:
    """The ends of all source partitions, by link."""
    return {
        (engine.pair.link, replica.source): end(engine.pair.orange, *replica.source)
        for engine in engines
        for runner in engine.runners
        for replica in runner.replicas
    }


def _are_at(engine: Engine, ends: Mapping[tuple[str, Partition], int]) -> bool:
    replicas = [replica for runner in engine.runners for replica in runner.replicas]
    held = {replica.source: engine.held(*replica.source) for replica in replicas}
    return all(at is not None and at.next_offset >= ends[engine.pair.link, key] for key, at in held.items())
