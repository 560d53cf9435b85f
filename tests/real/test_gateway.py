"""Both VMs' gateways on one loopback: a name is asked for, its address dialled, and its broker answers."""

import asyncio
import contextlib
import logging
from dataclasses import replace

import pytest

from appliance.errors import SettingsError
from appliance.gateway.destination_side import run_destination
from appliance.gateway.source_side import run_source
from appliance.settings.parse import parse
from appliance.settings.role import TUNNEL_ENDS
from appliance.settings.target import Target
from tests.support.dns import addresses, answer, resolve, scripted_server
from tests.support.settings import REQUIRED, SECRET
from tests.support.tunnel import echo, logged, target_server

ANY_PORT = Target("127.0.0.1", 0)


class Ready(logging.Handler):
    """Waits for the ``ready`` lines of the gateways."""

    def __init__(self):
        super().__init__()
        self.lines = asyncio.Queue()

    def emit(self, record):
        if record.getMessage() == "ready":
            self.lines.put_nowait(record.fields)


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    yield
    assert SECRET not in logged(caplog.get_records("call"))


@pytest.fixture
async def ready():
    handler = Ready()
    logging.getLogger("appliance.gateway").addHandler(handler)
    yield handler.lines
    logging.getLogger("appliance.gateway").removeHandler(handler)


def settings_for(port, tunnel_port=0, resolver=None):
    environment = REQUIRED | {
        "SOURCE_BROKER_SERVERS": f"b0.orange.example:{port}",
        "SOURCE_BROKER_PATTERN": f"*.pattern.example:{port}",
        "SOURCE_SIDE_TUNNEL_IP": "127.0.0.1",
        "TUNNEL_TARGET_NETWORKS": "127.0.0.0/8",
        "TUNNEL_RESOLVER": str(resolver or ""),
        "TUNNEL_STATUS_LISTEN": "127.0.0.1:0",
    }
    settings = parse(environment, TUNNEL_ENDS)
    server = Target("127.0.0.1", tunnel_port)
    tunnel = replace(settings.tunnel, listen=server, server=server)
    return replace(settings, tunnel=tunnel, dns=replace(settings.dns, listen=ANY_PORT))


@contextlib.asynccontextmanager
async def running(run, settings, ready):
    """A gateway until it is stopped, and the fields of its ready line."""
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run(settings, stopping))
        async with asyncio.timeout(10):
            fields = await ready.get()
        yield fields
        stopping.set()
        async with asyncio.timeout(10):
            await task


def port_in(address):
    return int(address.rpartition(":")[2])


@contextlib.asynccontextmanager
async def both_sides(ready):
    """A broker that echoes, and both gateways; the broker's port and that of the shim."""

    async def everything_is_here(query):
        return [answer(query, "127.0.0.1")]

    async with (
        target_server(echo) as port,
        scripted_server(everything_is_here) as resolver,
        running(run_source, settings_for(port, resolver=resolver), ready) as source,
    ):
        settings = settings_for(port, port_in(source["listen"]))
        async with running(run_destination, settings, ready) as destination:
            yield port, port_in(destination["dns"])


@pytest.mark.parametrize("name", ["b0.orange.example", "b7.pattern.example"])
async def test_a_broker_is_reached_by_its_own_name_and_port(ready, name):
    async with both_sides(ready) as (port, shim):
        (address,) = addresses(await resolve(shim, name))
        reader, writer = await asyncio.open_connection(address, port)
        writer.write(b"metadata, please")
        writer.write_eof()
        assert await reader.read(-1) == b"metadata, please"
        writer.close()
    assert address.startswith("127.")
    assert address != "127.0.0.1"


async def test_a_port_that_the_source_cannot_have_is_one_clear_line():
    async with target_server(echo) as taken:
        with pytest.raises(SettingsError, match="TUNNEL_LISTEN, TUNNEL_PORT: cannot listen"):
            await run_source(settings_for(9092, taken), asyncio.Event())


async def test_what_the_destination_cannot_have_is_one_clear_line_and_leaves_nothing_open(ready):
    settings = settings_for(9092)
    unfit = replace(settings, dns=replace(settings.dns, listen=Target("192.0.2.1", 0)))
    before = asyncio.all_tasks()
    with pytest.raises(SettingsError, match="DNS_LISTEN"):
        await run_destination(unfit, asyncio.Event())
    assert asyncio.all_tasks() == before
    async with running(run_destination, settings, ready):
        pass
