"""Two replicators of one link: one copies, the other stands by, and takes over when the first is gone."""

import signal

import psutil
import pytest

from testbed.process import OwnedProcess
from tests.support.link import Link
from tests.support.patience import PATIENCE
from tests.support.processes import family
from tests.support.rows import read_rows, until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

COPIES, STANDS_BY = r"replicator: copies host=", r"replicator: stands by: another replicator copies"


@pytest.fixture
def orders(shared: Link) -> Link:
    """A new link with one source topic, ``orders``."""
    shared.clear()
    shared.make_topic(shared.orange, "orders", 2)
    return shared


async def both(orders: Link) -> tuple[OwnedProcess, OwnedProcess]:
    first = await orders.start("replicate")
    await first.wait_for_line(COPIES, PATIENCE)
    second = await orders.start("replicate")
    await second.wait_for_line(STANDS_BY, PATIENCE)
    return first, second


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP], ids=lambda end: end.name)
async def test_a_standby_goes_on_where_the_active_one_has_ended(orders: Link, end: signal.Signals) -> None:
    async with orders.tunnel():
        first, second = await both(orders)
        try:
            orders.produce("orders", 100)
            await until_rows(orders.grape, "orders.copy", 100, 0)
            for process in [psutil.Process(first.pid)] if end is signal.SIGTERM else family(first.pid):
                process.send_signal(end)
            orders.produce("orders", 100)
            await until_rows(orders.grape, "orders.copy", 200, 0)
            await second.wait_for_line(COPIES, PATIENCE)
        finally:
            await first.kill()
            await second.kill()
    assert read_rows(orders.orange, "orders", 0) == read_rows(orders.grape, "orders.copy", 0)
