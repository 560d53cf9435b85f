"""One order in three clusters, read by another client: processes killed, brokers stopped, and a home that moves."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from appliance.commands.order.run import order_of
from appliance.engine.problem_log import to_log
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.clusters import order_cluster
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.checkpoint import Owner
from appliance.order.process import OrderProcess
from appliance.settings.env_file import read_order
from appliance.settings.role import Role
from testbed.cluster import Cluster
from testbed.process import OwnedProcess
from tests.conftest import plain
from tests.support.commands import answer
from tests.support.order_chains import Chains
from tests.support.order_clusters import Ordered, settled, until
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def shown(chains: Chains, records: int, *clusters: str) -> None:
    """Wait until these clusters show so many more records than now, and require that all are right."""
    wanted = [rank + records for rank in chains.shown(*clusters)]
    await until(lambda: all(rank >= each for rank, each in zip(chains.shown(*clusters), wanted, strict=True)))
    chains.check()


async def test_all_clusters_show_one_order_of_all_records(three: Ordered) -> None:
    three.make_topic("orders-plain", 3)
    async with three.processes(), three.followed("orders-plain", 3) as chains:
        with three.written("orders-plain", 3, seed=1):
            await shown(chains, 500, *three.clusters)
        await settled(chains, *three.clusters)


async def test_a_consumer_that_moves_to_another_t_global_reads_on_without_a_double(three: Ordered) -> None:
    three.make_topic("orders-moving", 1)
    async with three.processes(), three.followed("orders-moving", 1) as chains:
        with three.written("orders-moving", 1, seed=2):
            await shown(chains, 300, *three.clusters)
        await settled(chains, *three.clusters)
    before, after = (keys(three.clusters[name], "orders-moving-global") for name in ("grape", "lemon"))
    origins = {name: keys(cluster, "orders-moving") for name, cluster in three.clusters.items()}
    settings = read_order(three.settings("lemon"), Role.REPLICATOR, {})
    async with order_cluster(settings, "lemon") as lemon:
        maps = OffsetMaps(lemon, order_of(settings).naming)
        await maps.read()
    for rank in range(1, len(before), 20):
        key = [*before.values()][rank]
        name = key.split(b"/")[0].decode()
        at = next(offset for offset, each in origins[name].items() if each == key)
        moved = maps.translate(Partition(f"{name}:orders-moving", 0), at)
        assert [each for offset, each in after.items() if offset >= (moved.offset or 0)] == [*before.values()][rank:]


async def test_a_killed_process_that_comes_back_goes_on_exactly(three: Ordered) -> None:
    three.make_topic("orders-killed", 2)
    async with three.processes() as running, three.followed("orders-killed", 2) as chains:
        with three.written("orders-killed", 2, seed=3):
            for name in three.clusters:
                await shown(chains, 50, *three.clusters)
                os.kill(running[name].pid, signal.SIGKILL)
                await running[name].wait(PATIENCE)
                running[name] = await three.process(name)
            await shown(chains, 50, *three.clusters)
        await settled(chains, *three.clusters)


async def test_a_cluster_that_is_down_holds_nobody_up_and_catches_up(three: Ordered) -> None:
    three.make_topic("orders-down", 2)
    async with three.processes(), three.followed("orders-down", 2) as chains:
        with three.written("orders-down", 2, seed=4):
            await shown(chains, 50, *three.clusters)
            await three.clusters["lemon"].kill(0)
            await shown(chains, 200, "orange", "grape")
            await three.clusters["lemon"].restart(0)
            await shown(chains, 300, *three.clusters)
        await settled(chains, *three.clusters)


async def test_the_home_moves_while_records_come(three: Ordered) -> None:
    three.make_topic("orders-moved", 2)
    async with in_this_process(three) as beside, three.followed("orders-moved", 2) as chains:
        with three.written("orders-moved", 2, seed=5):
            for name in ("grape", "lemon", "orange"):
                await shown(chains, 50, *three.clusters)
                beside[name].stand()
                await until(partial(is_home, beside[name]))
            await shown(chains, 50, *three.clusters)
        await settled(chains, *three.clusters)


async def test_the_home_moves_by_command_while_records_come(three: Ordered) -> None:
    three.make_topic("orders-by-command", 2)
    async with three.processes(), three.followed("orders-by-command", 2) as chains:
        with three.written("orders-by-command", 2, seed=8):
            for at, name in (("orange", "lemon"), ("grape", "orange")):
                await shown(chains, 50, *three.clusters)
                code, text = await answer("order", three.settings(at), "move", "--to", name, "--yes")
                assert (code, f"of {name}" in text) == (0, True), text
            await shown(chains, 50, *three.clusters)
        await settled(chains, *three.clusters)


async def test_all_partitions_have_one_order_where_t_global_has_one(three: Ordered) -> None:
    three.make_topic("single", 3)
    one = {"GLOBAL_TOPICS_REGEX": "single", "GLOBAL_PARTITIONS": "1"}
    async with three.processes(**one) as running, three.followed("single", 3, single=True) as chains:
        with three.written("single", 3, seed=6):
            await shown(chains, 100, *three.clusters)
            os.kill(running["orange"].pid, signal.SIGKILL)
            await running["orange"].wait(PATIENCE)
            running["orange"] = await three.process("orange", **one)
            await shown(chains, 100, *three.clusters)
        await settled(chains, *three.clusters)


async def test_one_process_orders_the_topic_of_several_clusters_for_a_try(tmp_path: Path) -> None:
    both = [Cluster(plain(f"tried-{number}", f"127.0.3.{48 + number}"), tmp_path) for number in range(2)]
    async with both[0], both[1]:
        two = Ordered({cluster.plan.name: cluster for cluster in both}, tmp_path)
        two.make_topic("tried", 2)
        brokers = ";".join(cluster.home_bootstrap for cluster in both)
        line = [sys.executable, "-m", "appliance.cli", "order", "run", "2", brokers, "tried"]
        process = await OwnedProcess.start("a try", line, tmp_path / "try.log")
        try:
            async with two.followed("tried", 2) as chains:
                with two.written("tried", 2, seed=7):
                    await shown(chains, 100, *two.clusters)
                await settled(chains, *two.clusters)
            os.kill(process.pid, signal.SIGTERM)
            assert await process.wait(PATIENCE) == 0
        finally:
            await process.kill()


def keys(cluster: Cluster, topic: str) -> dict[int, bytes]:
    """The keys of a topic's partition 0, by their offsets."""
    reader = {"group.id": "reader", "enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer({**cluster.client_configuration(), **reader})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: dict[int, bytes] = {}
    try:
        while (message := consumer.poll(PATIENCE)) is not None and message.error() is None:
            found[message.offset() or 0] = bytes(message.key() or b"")
        return found
    finally:
        consumer.close()


def is_home(process: OrderProcess) -> bool:
    """True if it has opened an epoch of its own, in all lanes and partitions."""
    records = [(runner.lane.promise, each.record) for runner in process.runners for each in runner.partitions.values()]
    return all(promise and promise.epoch == record.accepted for promise, record in records) and all(
        record.accepted.home == process.own for _, record in records
    )


@contextlib.asynccontextmanager
async def in_this_process(three: Ordered) -> AsyncIterator[dict[str, OrderProcess]]:
    """The processes beside all clusters, in the test's own."""
    stopping, processes = asyncio.Event(), {}
    async with contextlib.AsyncExitStack() as stack:
        for name in three.clusters:
            settings = read_order(three.settings(name), Role.REPLICATOR, {})
            clusters = {
                other: await stack.enter_async_context(order_cluster(settings, other)) for other in three.clusters
            }
            owner = Owner("in-the-test", "order", "here", 0, 1_000)
            processes[name] = OrderProcess(order_of(settings), name, clusters, owner, to_log)
        tasks = [asyncio.create_task(each.run(stopping), name=f"order of {each.own}") for each in processes.values()]
        try:
            yield processes
        finally:
            stopping.set()
            await asyncio.gather(*tasks)
