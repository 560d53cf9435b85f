"""Both ends of a tunnel on loopback, with a target behind it."""

import asyncio
import contextlib
import ipaddress
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from appliance.errors import NameUnresolved
from appliance.settings.secret import Secret
from appliance.settings.target import AllowedTargets, Target, TargetPattern
from appliance.settings.values import KeyExchange, Side, TunnelSettings
from appliance.tls.identity import Identity
from appliance.tunnel.broker_dialer import Resolve
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.model.connect import Timeouts
from appliance.tunnel.server import TunnelServer
from tests.support.patience import PATIENCE

SECRET = "loopback-uYw0kTq3sVxG8mJb2nRz5cEa"
IDS = "orange", "grape"
LINK = "-".join(IDS)
HOST = "b0.orange.example"
PATTERN = TargetPattern("pattern.example", 9092)
LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def tunnel_settings(*exact: Target, port: int = 0, **changes: object) -> TunnelSettings:
    """Settings of a link on loopback whose brokers may also be on loopback."""
    settings = TunnelSettings(
        source_id=IDS[0],
        destination_id=IDS[1],
        secret=Secret(SECRET),
        previous_secret=Secret(""),
        files=None,
        key_exchange=KeyExchange.X25519,
        ssh=None,
        server=Target("127.0.0.1", port),
        listen=Target("127.0.0.1", port),
        peer_addresses=("127.0.0.1",),
        allowed=AllowedTargets(exact, (PATTERN,)),
        resolver=None,
        broker_networks=(LOOPBACK,),
        endpoint_network=ipaddress.IPv4Network("127.64.0.0/10"),
        connections_max=1000,
        idle_seconds=900.0,
        status=Target("127.0.0.1", 0),
    )
    return replace(settings, **changes)


@dataclass
class Resolver:
    """A resolver of a few names that notes its queries."""

    addresses: dict[str, Sequence[str]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.addresses:
            raise NameUnresolved(f"no address for {host}")
        return self.addresses[host]


@dataclass
class Link:
    """A running tunnel to one target, and its endpoint."""

    server: TunnelServer
    client: TunnelClient
    resolver: Resolver
    target: Target
    endpoint: int

    async def connect(self, limit: int = 2**16) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the endpoint."""
        return await asyncio.open_connection("127.0.0.1", self.endpoint, limit=limit)

    async def carrying(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the endpoint of an echo that has carried a byte."""
        return await carrying(self.endpoint)


async def carrying(endpoint: int, address: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to an echo that has carried a byte."""
    reader, writer = await asyncio.open_connection(address, endpoint)
    assert await carries(reader, writer)
    return reader, writer


async def carries(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes = b"x") -> bool:
    """True if an echo answers on a standing connection."""
    writer.write(data)
    return await reader.readexactly(len(data)) == data


@contextlib.asynccontextmanager
async def target_server(handler: Handler) -> AsyncIterator[int]:
    """A TCP server on loopback that passes each connection to ``handler`` and then closes it; yields its port."""
    tasks = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await handler(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A target that sends all bytes back, and ends when they end."""
    while data := await reader.read(2**16):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


@dataclass(frozen=True)
class Ends:
    """The two ends of a tunnel on loopback, running together or each alone.

    ``identity`` is the default of each end. A byte takes ``hops`` TCP connections to its target, and ``window`` bytes
    can wait for a slow reader besides those in TCP's buffers.
    """

    identity: Callable[[Side], Identity]
    hops: int = 3
    window: int = 0

    @contextlib.asynccontextmanager
    async def running_server(
        self,
        target: Target,
        resolver: Resolve | None = None,
        timeouts: Timeouts | None = None,
        end: Identity | None = None,
        clock: Callable[[], float] = time.time,
        status: Callable[[], bytes] | None = None,
        **changes: object,
    ) -> AsyncIterator[TunnelServer]:
        """The source's end alone, which may dial ``target``."""
        settings = tunnel_settings(target, **changes)
        resolve = resolver or Resolver({target.host: ["127.0.0.1"]})
        identity = end or self.identity(Side.SOURCE)
        server = TunnelServer(settings, identity, resolve, timeouts, clock, status)
        async with asyncio.timeout(PATIENCE), server:
            yield server

    @contextlib.asynccontextmanager
    async def running_client(
        self,
        target: Target,
        port: int,
        end: Identity | None = None,
        timeouts: Timeouts | None = None,
        **changes: object,
    ) -> AsyncIterator[tuple[TunnelClient, int]]:
        """The destination's end alone, which dials ``port``, and the port of its endpoint for ``target``."""
        settings = tunnel_settings(target, port=port, **changes)
        async with TunnelClient(settings, end or self.identity(Side.DESTINATION), timeouts) as client:
            yield client, await client.open_endpoint(target, "127.0.0.1", 0)

    @contextlib.asynccontextmanager
    async def link_to(
        self,
        handler: Handler,
        timeouts: Timeouts | None = None,
        resolve: Resolve | None = None,
        at_client: Mapping[str, object] | None = None,
        **changes: object,
    ) -> AsyncIterator[Link]:
        """A tunnel to the target ``handler``; ``changes`` are those of the server's settings."""
        async with target_server(handler) as port:
            target = Target(HOST, port)
            resolver = Resolver({HOST: ["127.0.0.1"]})
            async with (
                self.running_server(target, resolve or resolver, timeouts, **changes) as server,
                self.running_client(target, server.port, timeouts=timeouts, **(at_client or {})) as (
                    client,
                    endpoint,
                ),
            ):
                yield Link(server, client, resolver, target, endpoint)


def logged(records: Sequence[logging.LogRecord]) -> str:
    """The log, messages and fields, as one text."""
    return "\n".join(f"{record.getMessage()} {getattr(record, 'fields', '')} {record.exc_text}" for record in records)
