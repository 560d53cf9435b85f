"""The operator of an order: runs commands of ``bin/appliance`` on simulated clusters, each as a process of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar
from unittest import mock

from appliance import command_line
from appliance.order import handle
from appliance.settings.order import parse_order
from appliance.settings.order_values import OrderSettings
from tests.simulation.loop import Life
from tests.simulation.order_world import DistantCluster, OrderWorld

Result = TypeVar("Result")


def settings_of(world: OrderWorld, own: str) -> OrderSettings:
    """The settings of the VM beside a cluster."""
    order = {
        "GLOBAL_CLUSTERS": ",".join(world.names),
        "GLOBAL_CLUSTER": own,
        "GLOBAL_HOME": world.names[0],
        "GLOBAL_TOPICS_REGEX": "orders|payments",
        "GLOBAL_ROUTE": "direct",
        "GLOBAL_PARTITIONS": "1" if world.order.single else "0",
    }
    for name in world.names:
        order |= {f"{name.upper()}_{end}": f"{name}:9092" for end in ("BROKER_SERVERS", "API_KEY", "API_SECRET")}
    return parse_order(order)


class Operator:
    """Runs commands on the VM beside the cluster ``own``."""

    def __init__(self, world: OrderWorld, own: str, go_on: Callable[[float], None]) -> None:
        self.world, self.own, self._go_on = world, own, go_on

    def run(self, *words: str) -> int:
        """The exit code of a command."""
        parsed = command_line.parser(words[0], command_line.command(words[0])).parse_args(words)

        def read(*_: object) -> OrderSettings:
            return settings_of(self.world, self.own)

        @contextlib.asynccontextmanager
        async def opened(_: object, name: str) -> AsyncIterator[DistantCluster]:
            yield DistantCluster(self.world, self.own, name, life)

        life = Life(" ".join(words))
        with (
            mock.patch.object(handle, "order_cluster", opened),
            mock.patch("appliance.runtime.command.log.configure"),
            mock.patch("appliance.settings.env_file._read", read),
        ):
            return self.wait(life, lambda: command_line.command(words[0]).run(parsed, asyncio.Event())) or 0

    def wait(self, life: Life, work: Callable[[], Awaitable[Result]]) -> Result:
        """The result of some work of that life."""

        async def done() -> Result:
            return await work()

        task = self.world.loop.start(life, done())
        for _ in range(1000):
            if task.done():
                return task.result()
            self._go_on(0.5)
        raise AssertionError(f"{life.name} does not end")
