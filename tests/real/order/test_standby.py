"""Two processes beside one cluster of three: one writes there, the other stands by."""

import os
import signal

import pytest

from testbed.process import OwnedProcess
from tests.real.order.test_order import shown
from tests.real.order.test_order_views import told
from tests.support.order_clusters import Ordered, settled
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")

STANDS_BY = "replicator: stands by"


async def begins(process: OwnedProcess, times: int = 1) -> None:
    """Wait until a process has become the active one so many times."""

    async def begun() -> bool:
        return process.log_file.read_text().count("replicator: order begins") >= times

    await process.wait_until(begun, PATIENCE, "begin")


async def test_case_1550_a_standby_goes_on_beside_the_cluster_where_the_active_process_has_ended(
    three: Ordered,
) -> None:
    # Two processes beside one cluster used to take its lanes from each other: the older one ended, and was started.
    three.make_topic("orders-standby", 2)
    async with three.processes() as running, three.followed("orders-standby", 2) as chains:
        first = running["orange"]
        second = await three.process("orange", vm=2, CONSOLE_LISTEN="127.0.0.31:8088")
        with three.written("orders-standby", 2, seed=9):
            try:
                await second.wait_for_line(STANDS_BY, PATIENCE)
                _, status = await told(three, "grape", "order", "status")
                standbys = {each["id"]: len(each["standbys"]) for each in status["clusters"]}
                assert standbys == {"orange": 1, "grape": 0, "lemon": 0}
                await shown(chains, 50, *three.clusters)
                os.kill(first.pid, signal.SIGSTOP)
                await begins(second)
                await shown(chains, 50, *three.clusters)
                os.kill(first.pid, signal.SIGCONT)
                await first.wait_for_line(STANDS_BY, PATIENCE)
                await shown(chains, 50, *three.clusters)
                os.kill(second.pid, signal.SIGTERM)
                await begins(first, times=2)
                assert await second.wait(PATIENCE) == 0
                await shown(chains, 50, *three.clusters)
                second = await three.process("orange", vm=2, CONSOLE_LISTEN="127.0.0.31:8088")
                await second.wait_for_line(STANDS_BY, PATIENCE)
                os.kill(first.pid, signal.SIGKILL)
                await begins(second, times=2)
                await shown(chains, 50, *three.clusters)
            finally:
                running["orange"] = second
                await first.kill()
        await settled(chains, *three.clusters)
