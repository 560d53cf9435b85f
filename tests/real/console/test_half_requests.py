"""Thousands of requests without an end hold neither the page nor memory: each has a deadline, all have a bound."""

import asyncio
import contextlib
import selectors
import socket
import ssl
from pathlib import Path

import pytest

from appliance.console import serving
from tests.real.console.test_pages import OWN, TOKEN, at, got
from tests.support.authority import Authority, page_files
from tests.support.console import of_size, shown
from tests.support.flood import drop_the_lost
from tests.support.patience import PATIENCE

MANY = 2000
AT_ONCE = 50
"""Below the backlog: what does not fit there waits for a second in the kernel."""
HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-More: "
BODY = b"POST " + OWN.encode() + b"session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n"
BODY += b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken="


def flooded(address: str, half: bytes, selector: selectors.BaseSelector) -> None:
    """Send half a request on many connections; keep those that are not ended."""
    host, port = address.split(":")
    for number in range(MANY):
        connection = socket.create_connection((host, int(port)), PATIENCE)
        with contextlib.suppress(ConnectionError):
            connection.sendall(half)
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)
        if number % AT_ONCE == 0:
            drop_the_lost(selector, 0)


@pytest.mark.parametrize("half", [HEAD, BODY, b""], ids=["heads", "bodies", "handshakes of TLS"])
async def test_case_982_thousands_of_half_requests_keep_no_page_from_a_viewer(
    half: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 4,000 were held for an hour each; with TLS 1,000 silent ones took 300 MiB (case 1045).
    monkeypatch.setattr(serving, "HEAD_SECONDS", 1000 * PATIENCE)
    authority = Authority()
    own = {} if half else page_files(tmp_path, authority)
    trusting = None if half else ssl.create_default_context(cadata=authority.pem.decode())
    with selectors.DefaultSelector() as selector:
        async with shown(of_size({"orders": 2}, now=at(0)), CONSOLE_TOKEN=TOKEN, **own) as address:
            flood = asyncio.create_task(asyncio.to_thread(flooded, address, half, selector))
            while not flood.done():
                assert "orange" in await got(address, OWN, trusting)
            await flood
            async with asyncio.timeout(PATIENCE):
                while len(selector.get_map()) > serving.CONNECTIONS_MAX:
                    assert "orange" in await got(address, OWN, trusting)
                    await asyncio.to_thread(drop_the_lost, selector, 0.1)
        for key in [*selector.get_map().values()]:
            selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]


@pytest.mark.parametrize("first", [b"", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"], ids=["first", "next"])
async def test_case_982_a_head_that_does_not_end_has_a_deadline(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.2)
    async with shown(of_size({"orders": 2}, now=at(0))) as address:
        reader, writer = await asyncio.open_connection(*address.split(":"))
        writer.write(first + HEAD)
        async with asyncio.timeout(PATIENCE):
            answered = await reader.read()
        writer.close()
    assert answered.startswith(b"HTTP/1.1 200 OK" if first else b"")
