"""Status, health and metrics as a user sees them: the commands as processes, and a link between two clusters."""

import asyncio
import json
import re
import signal
import socket
import urllib.error
import urllib.request
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from testbed.process import OwnedProcess
from tests.support.link import Link, faults
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def orders(shared: Link) -> Link:
    """A new link with one source topic, ``orders``, of two partitions and 100 records."""
    shared.clear()
    shared.make_topic(shared.orange, "orders", 2)
    shared.produce("orders", 100)
    return shared


async def status(on: Link, *options: str, **changed: str) -> tuple[int, str]:
    """The exit code and the output of the command."""
    process = await on.start("status", options=options, **changed)
    try:
        return await process.wait(PATIENCE), process.log_file.read_text()
    finally:
        await process.kill()


async def console_of(replicator: OwnedProcess) -> str:
    """The address of a replicator's console."""
    return await replicator.wait_for_address("status: listening", PATIENCE)


async def page(address: str, path: str) -> tuple[int, bytes]:
    def ask() -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    return await asyncio.to_thread(ask)


async def until_health(address: str, code: int, state: str) -> dict[str, Any]:
    """Ask until the health endpoint has this status."""
    async with asyncio.timeout(2 * PATIENCE):
        while True:
            found, body = await page(address, "/health")
            answer: dict[str, Any] = json.loads(body)
            if (found, answer["state"]) == (code, state):
                return answer
            await asyncio.sleep(0.2)


async def metrics(address: str) -> dict[str, float]:
    """The samples, without the prefix; of partitions only those of orders-0."""
    code, body = await page(address, "/metrics")
    assert code == 200
    return {
        sample.name.removeprefix("kafka_replicator_"): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
        if sample.labels.get("partition", "0") == "0"
    }


async def test_health_and_metrics_follow_the_link_through_an_outage_of_the_tunnel(orders: Link) -> None:
    async with orders.running("source") as source, orders.running("replicate") as replicator:
        await source.wait_for_line("ready", PATIENCE)
        address = await console_of(replicator)
        assert address.startswith("127.0.0.1:")
        async with orders.running("destination"):
            await until_health(address, 200, "copied")
            found = await metrics(address)
            assert (found["records_copied_total"], found["lag_records"], found["stopped"]) == (100, 0, 0)
            assert found["source_reachable"] == found["destination_reachable"] == 1
        (problem,) = (await until_health(address, 503, "unknown"))["troubles"]
        assert "source cluster orange: unknown since" in problem
        found = await metrics(address)
        assert (found["source_reachable"], found["destination_reachable"]) == (0, 1)
        assert found["records_copied_total"] == 100
        assert not {"lag_records", "lag_seconds"} & found.keys()
        code, body = await page(address, "/status")
        seen = json.loads(body)
        assert (code, seen["topics"][0]["partitions"][0]["lag_records"]) == (200, None)
        assert seen["source"]["unknown"]["since"]
        async with orders.running("destination"):
            await until_health(address, 200, "copied")


@pytest.mark.release  # held by tests/unit/status/test_compose.py and test_metrics.py
async def test_case_878_a_copy_that_cannot_be_made_is_told_by_every_view(orders: Link) -> None:
    # The log had one warning; the state was "copying", the exit code 0, /health 200, and no alert could fire.
    orders.make_topic(orders.grape, "orders_copy", 1)  # Kafka takes no second name that differs in this alone
    async with orders.tunnel(), orders.running("replicate") as replicator:
        address = await console_of(replicator)
        (trouble,) = (await until_health(address, 503, "stopped"))["troubles"]
        assert trouble.startswith("orders: not copied since ")
        assert "collides with existing topic: orders_copy" in trouble
        code, printed = await status(orders, CONSOLE_LISTEN=address)
        assert (code, trouble in printed.replace("\n", "")) == (1, True)
        _, metrics = await page(address, "/metrics")
        assert b'kafka_replicator_topic_stopped{topic="orders"} 1.0' in metrics
        assert b'kafka_replicator_link_state{state="stopped"} 1.0' in metrics
    code, printed = await status(orders, CONSOLE_LISTEN=address)
    assert "problems of the running replicator: unknown: no replicator of this VM answers" in printed


@pytest.mark.release  # held by tests/real/status/test_watcher.py
async def test_status_needs_no_replicator_and_says_what_is_left_to_copy(orders: Link) -> None:
    async with orders.tunnel():
        code, printed = await status(orders)
        assert code == 1
        assert "never run" in printed.splitlines()[0]
        async with orders.running("replicate") as replicator:
            await until_health(await console_of(replicator), 200, "copied")
        orders.produce("orders", 11, partition=1)
        code, printed = await status(orders, "--json")
        assert code == 0
        seen = json.loads(printed)
        assert (seen["state"], seen["topics"][0]["copied"], seen["topics"][0]["lag_records"]) == ("copying", 100, 11)
        assert seen["topics"][0]["rate"] == 0
        assert {lane["owner"]["host"] for lane in seen["lanes"] if lane["owner"]} == {socket.gethostname()}
        code, printed = await status(orders, "--topic", "orders")
        assert code == 0
        assert re.search(r"│ orders +│ orders.copy │ +2 │ +100 │ +0 │ +11 │ .*copying +│", printed)
        code, printed = await status(orders, "--topic", "ordres")
        assert code == 2
        assert printed.startswith("appliance status: --topic ordres: no such topic is copied")
    code, printed = await status(orders)
    assert code == 1
    assert "source cluster orange: unknown since" in printed
    assert "appliance destination" in printed
    assert re.search(r"│ orders +│ orders.copy │ +2 │ +100 │ +unknown │ +unknown │ +unknown │ 2 unknown +│", printed)


@pytest.mark.release  # the table is tested in tests/unit/status, the snapshots in tests/real/status
async def test_status_that_watches_shows_what_comes_until_it_is_told_to_stop(orders: Link) -> None:
    async with orders.tunnel(), orders.running("replicate") as replicator:
        await until_health(await console_of(replicator), 200, "copied")
        watching = await orders.start("status", options=("--watch", "--json"))
        try:
            await watching.wait_for_line('"copied": 100', PATIENCE)
            orders.produce("orders", 5)
            await watching.wait_for_line('"copied": 105', PATIENCE)
            psutil.Process(watching.pid).send_signal(signal.SIGINT)
            assert await watching.wait(PATIENCE) == 0
        finally:
            await watching.kill()
        assert {json.loads(line)["state"] for line in watching.log_file.read_text().splitlines()} <= {
            "copied",
            "copying",
        }


@pytest.mark.release  # what serves the page is tested in tests/unit/runtime
async def test_a_console_port_that_is_taken_is_told_once_and_copying_goes_on(orders: Link) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        async with orders.tunnel(), orders.running("replicate", CONSOLE_LISTEN=listen) as replicator:
            line = await replicator.wait_for_line("CONSOLE_LISTEN", PATIENCE)
            assert f"CONSOLE_LISTEN: cannot listen on {listen}: address already in use" in line
            await replicator.wait_for_line("topics to copy", PATIENCE)
            await asyncio.sleep(6)  # it has tried again by then
            assert sum("CONSOLE_LISTEN" in line for line in faults(replicator)) == 1
            taken.close()
            await until_health(await console_of(replicator), 200, "copied")
