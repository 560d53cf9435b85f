"""A small HTTP/1.1 server for a few pages that are read with GET: one request on each connection, everything bounded.

h11 holds the protocol's rules; this file has the socket, the timeout and the pages. It is not aiohttp's server, with
which an idle end of the tunnel takes 8 to 9 MB more (84 MB with this one); only the control center has that.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import h11

from appliance.runtime.bind import port_refused
from appliance.settings.target import Target

TEXT = "text/plain; charset=utf-8"
_HEAD_MAX = 16 * 1024
_CONNECTIONS_MAX = 256  # more than the backlog of 100, which is accepted at once
_TIMEOUT = 10.0
_READ_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    status: int
    content_type: str
    body: bytes


def json_page(document: object, status: int = 200) -> Page:
    """A document as JSON."""
    return Page(status, "application/json", json.dumps(document, indent=2).encode() + b"\n")


Pages = Callable[[str], Awaitable[Page]]
"""Gives the page of a path, which is without its query."""


class HttpServer:
    """Serves ``pages`` until it is closed."""

    def __init__(self, pages: Pages, seconds: float = _TIMEOUT) -> None:
        """``seconds``: longest time of a connection, from its first byte to its last."""
        self._pages = pages
        self._seconds = seconds
        self._server: asyncio.Server | None = None
        self.serving: dict[asyncio.Task[None], bool] = {}
        """The oldest first; true while its page is made, false of one that sends its head or takes its answer."""

    async def start(self, variable: str, at: Target) -> Target:
        """Listen, and return the address. Port 0 is any free one."""
        with port_refused(variable, at):
            self._server = await asyncio.start_server(self._accept, at.host, at.port, limit=_READ_BYTES)
        port: int = self._server.sockets[0].getsockname()[1]
        return Target(at.host, port)

    async def serve(self, variable: str, at: Target, log: logging.Logger, line: str) -> None:
        """Listen, log the address with ``line``, and serve until cancelled."""
        address = await self.start(variable, at)
        try:
            log.info(line, extra={"fields": {"address": str(address)}})
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop listening, and end open connections."""
        if self._server is not None:
            self._server.close()
        serving = list(self.serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self.serving) >= _CONNECTIONS_MAX:
            oldest = min(self.serving, key=self.serving.__getitem__)
            del self.serving[oldest]
            oldest.cancel()
        task = asyncio.create_task(self._serve(reader, writer), name="http request")
        self.serving[task] = False
        task.add_done_callback(lambda done: self.serving.pop(done, None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(self._seconds):
                try:
                    await self._answer(reader, writer)
                    writer.close()
                    await writer.wait_closed()
                finally:
                    writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol, task = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_MAX), asyncio.current_task()
        assert task is not None
        try:
            request = await _request(protocol, reader)
            self.serving[task] = True
            page = await self._page(request) if request is not None else None
        except h11.RemoteProtocolError as error:
            page = Page(error.error_status_hint, TEXT, b"this is no HTTP request\n")
        self.serving[task] = False
        if page is not None:
            writer.write(_encoded(protocol, page))
            await writer.drain()

    async def _page(self, request: h11.Request) -> Page:
        if request.method != b"GET":
            return Page(405, TEXT, b"only GET is understood\n")
        return await self._pages(request.target.decode("ascii").partition("?")[0])


async def _request(protocol: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """The head of the request; None when the client closes without one."""
    while True:
        event = protocol.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        protocol.receive_data(await reader.read(_READ_BYTES))


def _encoded(protocol: h11.Connection, page: Page) -> bytes:
    headers = [
        ("content-type", page.content_type),
        ("content-length", str(len(page.body))),
        ("cache-control", "no-store"),
        ("connection", "close"),
    ]
    if page.status == 405:
        headers.append(("allow", "GET"))
    head = protocol.send(h11.Response(status_code=page.status, headers=headers)) or b""
    return head + page.body
