"""The HTTP server on real sockets: pages for valid requests, and limits for all others."""

import asyncio
import contextlib
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from appliance.errors import SettingsError
from appliance.runtime.http import TEXT, HttpServer, Page
from appliance.settings.target import Target
from tests.support.patience import PATIENCE

LARGE = b"x" * 5_000_000


async def pages(path: str) -> Page:
    found = {"/small": b"small\n", "/large": LARGE}.get(path)
    return Page(200, TEXT, found) if found else Page(404, TEXT, b"there is /small, /large\n")


@contextlib.asynccontextmanager
async def serving(seconds: float) -> AsyncIterator[tuple[HttpServer, Target]]:
    server = HttpServer(pages, seconds)
    try:
        yield server, await server.start("CONSOLE_LISTEN", Target("127.0.0.1", 0))
    finally:
        await server.close()


async def until_serving(server: HttpServer, connections: int) -> None:
    """Wait until this number of connections is being served."""
    async with asyncio.timeout(PATIENCE):
        while len(server.serving) != connections:
            await asyncio.sleep(0.01)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Target]:
    """A server whose timeout is longer than any test."""
    async with serving(PATIENCE) as (_, address):
        yield address


async def get(server: Target, path: str, method: str = "GET") -> tuple[int, bytes, str | None]:
    def ask() -> tuple[int, bytes, str | None]:
        request = urllib.request.Request(f"http://{server}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read(), answer.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers["Allow"]

    return await asyncio.to_thread(ask)


async def raw(server: Target, request: bytes) -> bytes:
    """The whole response to these bytes."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        with contextlib.suppress(ConnectionError):
            writer.write(request)
            await writer.drain()
            async with asyncio.timeout(PATIENCE):
                return await reader.read()
    finally:
        writer.close()
    return b""


async def test_a_page_is_read_with_or_without_a_query(server: Target) -> None:
    assert await get(server, "/small") == (200, b"small\n", TEXT)
    assert await get(server, "/small?pretty") == (200, b"small\n", TEXT)


async def test_a_large_page_arrives_whole(server: Target) -> None:
    assert (await get(server, "/large"))[1] == LARGE


async def test_another_path_is_not_found_and_says_what_there_is(server: Target) -> None:
    status, body, _ = await get(server, "/")
    assert (status, body) == (404, b"there is /small, /large\n")


async def test_another_method_than_get_is_refused(server: Target) -> None:
    status, _, allowed = await get(server, "/small", "POST")
    assert (status, allowed) == (405, "GET")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n", b" 400 "),
        (b"GET /small HTTP/1.1\r\n\r\n", b" 400 "),
        (b"GET /small HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 50_000, b" 431 "),
    ],
)
async def test_bytes_that_are_no_request_are_answered_as_such(
    server: Target, request_bytes: bytes, status: bytes
) -> None:
    assert status in (await raw(server, request_bytes)).partition(b"\r\n")[0]


async def test_one_request_is_served_on_a_connection_and_then_it_ends(server: Target) -> None:
    twice = await raw(server, b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
    assert twice.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in twice.lower()


async def test_a_client_that_says_nothing_or_takes_nothing_is_cut_off() -> None:
    async with serving(seconds=1.0) as (server, at):
        assert await raw(at, b"GET /small HT") == b""
        reader, writer = await asyncio.open_connection(at.host, at.port, limit=1024)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await until_serving(server, 1)
        await until_serving(server, 0)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(len(LARGE))
        writer.close()


async def test_case_982_a_silent_crowd_gives_way_to_the_next_that_asks(server: Target) -> None:
    crowd = [await asyncio.open_connection(server.host, server.port) for _ in range(400)]
    for _, writer in crowd:
        writer.write(b"GET /small HT")
    assert (await raw(server, b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n")).startswith(b"HTTP/1.1 200")
    for _, writer in crowd:
        writer.close()


async def test_a_port_that_is_taken_names_the_variable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError) as refusal:
            await HttpServer(pages).start("CONSOLE_LISTEN", Target("127.0.0.1", port))
    assert str(refusal.value) == (
        f"CONSOLE_LISTEN: cannot listen on 127.0.0.1:{port}: address already in use; "
        "stop the program that has it, or choose another"
    )


async def test_closing_ends_what_is_being_served() -> None:
    server = HttpServer(pages)
    address = await server.start("CONSOLE_LISTEN", Target("127.0.0.1", 0))
    reader, writer = await asyncio.open_connection(address.host, address.port)
    await until_serving(server, 1)
    await server.close()
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()
