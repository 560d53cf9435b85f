"""Both VMs' gateways in this process, on one loopback, with a broker that echoes, and their pages."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from appliance.gateway.command import run_destination, run_source
from appliance.settings.parse import parse
from appliance.settings.role import TUNNEL_ENDS
from appliance.settings.target import Target
from appliance.settings.values import Settings
from tests.support.dns import answer, scripted_server
from tests.support.patience import PATIENCE
from tests.support.settings import REQUIRED
from tests.support.ssh import SshServer
from tests.support.tunnel import echo, target_server

Fields = dict[str, Any]
ReadyLines = asyncio.Queue[Fields]
Run = Callable[[Settings, asyncio.Event], Awaitable[None]]


class Ready(logging.Handler):
    """Waits for the ``ready`` lines of the gateways."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: ReadyLines = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        """Take the fields of a ready line."""
        if record.getMessage() == "ready":
            self.lines.put_nowait(record.__dict__["fields"])


def settings_for(port: int, tunnel_port: int = 0, resolver: Target | None = None, **changes: str) -> Settings:
    """The settings of either gateway, with a broker on ``port``."""
    environment = REQUIRED | {
        "SOURCE_BROKER_SERVERS": f"b0.orange.example:{port}",
        "SOURCE_BROKER_PATTERN": f"*.pattern.example:{port}",
        "SOURCE_SIDE_TUNNEL_IP": "127.0.0.1",
        "TUNNEL_BROKER_NETWORKS": "127.0.0.0/8",
        "TUNNEL_RESOLVER": str(resolver or ""),
        "TUNNEL_STATUS_LISTEN": "127.0.0.1:0",
        **changes,
    }
    settings = parse(environment, TUNNEL_ENDS)
    server = Target("127.0.0.1", tunnel_port)
    tunnel = replace(settings.tunnel, listen=server, server=server)
    return replace(settings, tunnel=tunnel, dns=replace(settings.dns, listen=Target("127.0.0.1", 0)))


def through(ssh: SshServer) -> dict[str, str]:
    """The variables of a tunnel that an SSH server carries."""
    return {
        "TUNNEL_SSH": f"{ssh.user}@127.0.0.1:{ssh.port}",
        "TUNNEL_SSH_KEY_FILE": str(ssh.files.key),
        "TUNNEL_SSH_HOST_KEYS_FILE": str(ssh.files.host_keys),
    }


@contextlib.asynccontextmanager
async def running(run: Run, settings: Settings, ready: ReadyLines) -> AsyncIterator[Fields]:
    """A running gateway, and the fields of its ready line."""
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run(settings, stopping))
        async with asyncio.timeout(PATIENCE):
            fields = await ready.get()
        yield fields
        stopping.set()
        async with asyncio.timeout(PATIENCE):
            await task


def port_in(address: str) -> int:
    """The port of ``host:port``."""
    return int(address.rpartition(":")[2])


@contextlib.asynccontextmanager
async def running_source(ready: ReadyLines) -> AsyncIterator[tuple[int, int]]:
    """A broker that echoes, and the source's gateway; yields the ports of broker and tunnel."""

    async def everything_is_here(query: bytes) -> list[bytes]:
        return [answer(query, "127.0.0.1")]

    async with (
        target_server(echo) as port,
        scripted_server(everything_is_here) as resolver,
        running(run_source, settings_for(port, resolver=resolver), ready) as source,
    ):
        yield port, port_in(source["listen"])


@contextlib.asynccontextmanager
async def both_sides(ready: ReadyLines, **changes: str) -> AsyncIterator[tuple[int, int]]:
    """A broker that echoes, and both gateways, with changed settings for the destination's; yields the ports of broker
    and shim."""
    async with running_source(ready) as (port, tunnel_port):
        settings = settings_for(port, tunnel_port, **changes)
        async with running(run_destination, settings, ready) as destination:
            yield port, port_in(destination["dns"])


async def page(log: pytest.LogCaptureFixture, where: int, path: str) -> str:
    """The body of a page; ``where`` is the end's index among those that have logged their page's address."""
    async with asyncio.timeout(PATIENCE):
        while log.messages.count("status listening") <= where:
            await asyncio.sleep(0.02)
    told = [record.__dict__["fields"]["address"] for record in log.records if record.getMessage() == "status listening"]
    reader, writer = await asyncio.open_connection("127.0.0.1", port_in(told[where]))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE):
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 ")
    return body.decode()


async def status(log: pytest.LogCaptureFixture, where: int) -> Fields:
    """The status document of an end."""
    return json.loads(await page(log, where, "/status"))


async def status_when(log: pytest.LogCaptureFixture, where: int, holds: Callable[[Fields], bool]) -> Fields:
    """The first status document of which ``holds`` is true."""
    async with asyncio.timeout(PATIENCE):
        while not holds(document := await status(log, where)):
            await asyncio.sleep(0.05)
    return document
