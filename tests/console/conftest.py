"""A browser, and a link between two clusters with its control center, for all tests of the suite."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bench.lib.running import free_port
from testbed.process import OwnedProcess
from tests.console.browser import Browser, browser
from tests.support.link import Link, link
from tests.support.patience import PATIENCE
from tests.support.requirements import missing
from tests.support.spark_classes import spark_classes

__all__ = ["spark_classes"]

TOKEN = "Vq3t0cJ9mW5xkR7fLs2hYbNd8pEuZa4G"


def pytest_configure(config: pytest.Config) -> None:
    if lacking := missing("console"):
        pytest.exit(lacking, returncode=1)
    config.option.verbose = max(config.option.verbose, 1)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture
def seen(chromium: Browser) -> Iterator[Browser]:
    """The browser, as if it were new; at the end no page may have had an error, or have asked another site."""
    chromium.forget()
    yield chromium
    chromium.require_no_errors()


@dataclass(slots=True)
class Center:
    """A running link with its control center."""

    link: Link
    replicator: OwnedProcess
    console: OwnedProcess
    address: str
    replicator_page: str

    @property
    def page(self) -> str:
        """The link's page."""
        return f"http://{self.address}/links/orange-grape/"

    async def until(self, state: str) -> None:
        """Wait until the control center has seen the link in this state."""
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
            while True:
                async with session.get(f"http://{self.address}/card.json") as answer:
                    if (await answer.json())["state"] == state:
                        return
                await asyncio.sleep(0.2)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Link]:
    async with link(tmp_path_factory.mktemp("link")) as made:
        yield made


@contextlib.asynccontextmanager
async def control_center(on: Link, **changed: str) -> AsyncIterator[tuple[OwnedProcess, str]]:
    """The control center of a link, and its address."""
    listening = {"CONTROL_CENTER_LISTEN": "127.0.0.1:0"} | changed
    async with on.running("console", **listening) as console:
        yield console, await console.wait_for_address("console: listening", PATIENCE)


@pytest_asyncio.fixture(loop_scope="session")
async def center(shared: Link) -> AsyncIterator[Center]:
    """A new link that has copied 100 records of ``orders``, with everything running."""
    async with running(shared) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lasting(shared: Link) -> AsyncIterator[Center]:
    """Such a link for all tests of a module that change nothing of it."""
    async with running(shared) as made:
        yield made


@contextlib.asynccontextmanager
async def running(shared: Link) -> AsyncIterator[Center]:
    shared.clear()
    await asyncio.to_thread(shared.make_topic, shared.orange, "orders", 2)
    await asyncio.to_thread(shared.produce, "orders", 100)
    pages = {
        "TUNNEL_STATUS_LISTEN": f"127.0.0.1:{free_port('127.0.0.1')}",
        "CONSOLE_LISTEN": f"127.0.0.1:{free_port('127.0.0.1')}",
    }
    async with (
        shared.running("source") as source,
        shared.running("destination", **pages) as destination,
        shared.running("replicate", **pages) as replicator,
        control_center(shared, CONSOLE_TOKEN=TOKEN, REPLICA_GROUPS_REGEX=".*", **pages) as (console, address),
    ):
        await source.wait_for_line("ready", PATIENCE)
        await destination.wait_for_line("ready", PATIENCE)
        made = Center(shared, replicator, console, address, pages["CONSOLE_LISTEN"])
        await made.until("copied")
        yield made


def outrun_by_retention(on: Link) -> None:
    """Delete records that nobody has copied."""
    on.produce("orders", 50)
    admin = AdminClient(on.orange.client_configuration())
    for deletion in admin.delete_records([TopicPartition("orders", 0, 130)]).values():
        deletion.result(PATIENCE)
