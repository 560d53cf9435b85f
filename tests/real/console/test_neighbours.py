"""The control centers of a VM's links reach each other by sockets; none of them trusts what another one sends."""

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from appliance.console.model.tables import PAGE_SIZE
from appliance.console.neighbours import Neighbours, socket_of
from appliance.console.serving import serving
from appliance.settings.target import Target

CARD = {"link": "other", "replicator": "replicator-other", "source": "a", "destination": "b", "state": "copied"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def served(directory: Path, link: str, handler: Handler) -> AsyncIterator[str]:
    """A control center of a link whose pages are all by ``handler``; yield its address."""
    app = web.Application()
    app.add_routes([web.route("*", "/{path:.*}", handler)])
    async with serving(app, Target("127.0.0.1", 0), socket_of(directory, link)) as address:
        yield str(address)


@contextlib.asynccontextmanager
async def asked(directory: Path, page: str) -> AsyncIterator[aiohttp.ClientResponse]:
    """The answer of the link "own" to a request for the page of another one."""
    neighbours = Neighbours(directory, socket_of(directory, "own"))

    async def pass_on(request: web.Request) -> web.StreamResponse:
        return await neighbours.pass_on("other", request) or web.Response(status=404)

    async with (
        served(directory, "own", pass_on) as address,
        aiohttp.ClientSession(headers={"X-Forwarded-Proto": "https"}) as session,
        session.get(f"http://{address}{page}") as answer,
    ):
        yield answer


def page_of(size: int, **headers: str) -> Handler:
    async def page(request: web.Request) -> web.StreamResponse:
        if request.path == "/card.json":
            return web.json_response(CARD)
        answer = web.StreamResponse(headers={"Content-Type": "text/html", **headers})
        await answer.prepare(request)
        for _ in range(size // 1000):
            await answer.write(b"x" * 1000)
        return answer

    return page


async def test_case_270_a_page_of_another_link_arrives_whole(tmp_path: Path) -> None:
    async with served(tmp_path, "other", page_of(1_000_000)), asked(tmp_path, "/links/other/") as answer:
        assert len(await answer.read()) == 1_000_000


async def test_case_270_a_page_of_another_link_that_is_too_large_is_not_shown_in_part(tmp_path: Path) -> None:
    async with served(tmp_path, "other", page_of(5_000_000)), asked(tmp_path, "/links/other/") as answer:
        assert (answer.status, "more than" in await answer.text()) == (502, True)


@pytest.mark.parametrize(
    "sent",
    [
        b"[]",
        b"null",
        json.dumps(CARD | {"link": "another"}).encode(),
        b"[" * 100_000,
        b" " * 5_000_000 + json.dumps(CARD).encode(),
    ],
)
async def test_case_271_what_is_no_card_of_that_link_is_shown_as_unknown(sent: bytes, tmp_path: Path) -> None:
    async def card(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=sent, content_type="application/json")

    async with served(tmp_path, "other", card):
        (found,) = await Neighbours(tmp_path, None).cards()
    assert (found["state"], found["stale"]) == ("unknown", True)
    assert "does not answer" in found["reason"]


@pytest.mark.parametrize("wrong", ["text", [], {}, float("nan"), float("inf"), -1, 10**40, True])
async def test_case_271_a_number_of_a_card_that_is_none_is_unknown(wrong: Any, tmp_path: Path) -> None:
    async def card(_request: web.Request) -> web.StreamResponse:
        return web.json_response(CARD | {"since": wrong, "lag_seconds": wrong, "state": ["copied"]})

    async with served(tmp_path, "other", card):
        (found,) = await Neighbours(tmp_path, None).cards()
    assert (found["since"], found["lag_seconds"], found["topics"], found["state"]) == (None, None, None, "unknown")


async def test_case_272_a_request_is_passed_on_only_once(tmp_path: Path) -> None:
    socket_of(tmp_path, "other").symlink_to(socket_of(tmp_path, "own"))
    async with asked(tmp_path, "/links/other/") as answer:
        assert answer.status == 404


async def test_case_273_another_link_knows_that_the_browser_came_by_tls(tmp_path: Path) -> None:
    async def told(request: web.Request) -> web.StreamResponse:
        return web.json_response(CARD | {"reason": request.headers.get("X-Forwarded-Proto", "")})

    async with served(tmp_path, "other", told), asked(tmp_path, "/links/other/") as answer:
        assert (await answer.json())["reason"] == "https"


async def test_case_274_a_second_start_on_a_taken_port_leaves_the_socket_of_the_first(tmp_path: Path) -> None:
    async with served(tmp_path, "other", page_of(1000)) as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(Exception, match="CONTROL_CENTER_LISTEN"):
            async with serving(web.Application(), Target("127.0.0.1", port), socket_of(tmp_path, "other")):
                pass
        assert (await Neighbours(tmp_path, None).cards())[0]["state"] == "copied"


async def test_case_274_a_control_center_that_ends_leaves_the_socket_of_its_successor(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as successor:
        async with served(tmp_path, "other", page_of(1000)):
            await successor.enter_async_context(served(tmp_path, "other", page_of(1000)))
        assert (await Neighbours(tmp_path, None).cards())[0]["state"] == "copied"


async def test_case_274_a_directory_of_links_that_is_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(Exception, match="CONTROL_CENTER_LINKS"):
        async with serving(web.Application(), Target("127.0.0.1", 0), socket_of(file, "other")):
            pass


async def test_no_more_links_than_a_page_are_asked(tmp_path: Path) -> None:
    for number in range(2 * PAGE_SIZE):
        (tmp_path / f"{number}.sock").touch()
    assert len(await Neighbours(tmp_path, None).cards()) == PAGE_SIZE
