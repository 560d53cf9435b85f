"""The DNS shim's sockets: UDP and TCP on one port of loopback."""

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import cast

from appliance.dns.binding import bind, check
from appliance.dns.exchange import Upstream, framed, read_framed
from appliance.dns.responder import Lookup, Outcome, QueryCounters, Responder
from appliance.settings.values import DnsSettings

__all__ = ["DnsServer", "Lookup"]

QUERIES_MAX = 512
"""Most datagrams being answered at once; one more is dropped, and its client asks again."""
CONNECTIONS_MAX = 64
"""Most TCP connections; one more is closed at once."""
IDLE_TIMEOUT = 10.0
"""Seconds within which a TCP client sends its next query, and takes its reply."""

log = logging.getLogger("appliance.dns")

_Send = Callable[[bytes], None]
_Tasks = set[asyncio.Task[None]]


class DnsServer:
    """Serves DNS from ``start`` to ``close``."""

    def __init__(self, settings: DnsSettings, lookup: Lookup) -> None:
        self._settings = settings
        self._responder = Responder(lookup, Upstream(settings.upstream) if settings.upstream else None)
        self.port = settings.listen.port
        """The port of both sockets, known once the server is started."""
        self._datagrams: _Datagrams | None = None
        self._streams: asyncio.Server | None = None
        self._queries: _Tasks = set()
        self._connections: _Tasks = set()

    @property
    def counters(self) -> QueryCounters:
        """The queries so far, by outcome."""
        return self._responder.counters

    async def start(self) -> None:
        """Listen, and answer in the background."""
        check(self._settings)
        datagrams, streams = bind(self._settings.listen)
        self.port = streams.getsockname()[1]
        loop = asyncio.get_running_loop()
        try:
            _, self._datagrams = await loop.create_datagram_endpoint(lambda: _Datagrams(self._receive), sock=datagrams)
            self._streams = await asyncio.start_server(self._accept, sock=streams)
        except BaseException:
            await self.close()
            datagrams.close()
            streams.close()
            raise
        log.info("dns listening", extra={"fields": {"address": self._settings.listen.host, "port": self.port}})

    async def close(self) -> None:
        """Stop listening, and drop what is being answered; afterwards the port is free."""
        for listener in (self._datagrams, self._streams):
            if listener is not None:
                listener.close()
        tasks = self._queries | self._connections
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._datagrams is not None:
            await self._datagrams.closed.wait()

    def _receive(self, query: bytes, send: _Send) -> None:
        if len(self._queries) < QUERIES_MAX:
            _own(self._queries, self._answer(query, send), "dns query")
        else:
            self.counters[Outcome.DROPPED] += 1

    async def _answer(self, query: bytes, send: _Send) -> None:
        reply = await self._responder.reply_to(query, by_tcp=False)
        if reply is not None:
            send(reply)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            log.warning("dns connection refused, too many", extra={"fields": {"connections": CONNECTIONS_MAX}})
            writer.transport.abort()
            return
        task = _own(self._connections, self._converse(reader, writer), "dns connection")
        # Not in the task: one that is cancelled before its first step would leave its connection open.
        task.add_done_callback(lambda _task: writer.close())

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a connection's queries in order, until it ends, idles, or sends bytes that get no reply."""
        try:
            while reply := await self._next_reply(reader):
                writer.write(framed(reply))
                async with asyncio.timeout(IDLE_TIMEOUT):
                    await writer.drain()
        except (OSError, EOFError) as error:
            log.debug("dns connection ended", extra={"fields": {"reason": repr(error)}})

    async def _next_reply(self, reader: asyncio.StreamReader) -> bytes | None:
        async with asyncio.timeout(IDLE_TIMEOUT):
            query = await read_framed(reader)
        return await self._responder.reply_to(query, by_tcp=True)


class _Datagrams(asyncio.DatagramProtocol):
    """Passes each datagram on, with a function that sends its answer."""

    def __init__(self, receive: Callable[[bytes, _Send], None]) -> None:
        self._receive = receive
        self._transport: asyncio.DatagramTransport | None = None
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        if self._transport is not None:
            self._receive(data, functools.partial(self._transport.sendto, addr=sender))

    def connection_lost(self, _error: Exception | None) -> None:
        self.closed.set()

    def close(self) -> None:
        """Begin to close. The transport closes the socket in a later round of the loop; then ``closed`` is set."""
        if self._transport is not None:
            self._transport.abort()


def _own(tasks: _Tasks, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
    task = asyncio.get_running_loop().create_task(work, name=name)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task
