"""The control centers of a VM's links reach each other by sockets; none of them trusts what another one sends."""

import asyncio
import contextlib
import errno
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from appliance.console import peer_centers
from appliance.console.model.tables import PAGE_SIZE
from appliance.console.peer_centers import PeerCenters, socket_of
from appliance.console.serving import serving
from appliance.settings.target import Target
from tests.support.console import of_size, shown
from tests.support.patience import PATIENCE
from tests.support.peer_center import CARD, answer, peer_center


async def asked(directory: Path) -> dict[str, Any]:
    """The card of the only other link, once it has been asked for."""
    links = PeerCenters(directory, None)
    async with asyncio.timeout(PATIENCE):
        while True:
            (found,) = await links.cards()
            if found["reason"] or found["link"]:
                return found


async def test_the_card_of_another_link_is_shown_with_the_address_of_its_own_control_center(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8083/"
    async with shown(of_size({"orders": 2}), links=tmp_path, DESTINATION_CLUSTER_ID="lemon", CONTROL_CENTER_URL=url):
        found = await asked(tmp_path)
    assert (found["link"], found["url"], found["topics"], found["reason"]) == ("orange-lemon", url, 1, "")


async def test_a_card_of_an_older_release_has_no_address(tmp_path: Path) -> None:
    async with peer_center(tmp_path, answer(CARD)):
        found = await asked(tmp_path)
    assert (found["state"], found["url"]) == ("copied", "")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n" + json.dumps(CARD).encode(),
        json.dumps(CARD).encode(),
        answer([]),
        answer(None),
        answer(CARD | {"link": "another"}),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 10_000,
        answer(CARD | {"more": "x" * 20_000}),
    ],
)
async def test_case_271_what_is_no_card_of_that_link_is_shown_as_unknown(sent: bytes, tmp_path: Path) -> None:
    async with peer_center(tmp_path, sent):
        found = await asked(tmp_path)
    assert (found["state"], found["stale"]) == ("unknown", True)
    assert "does not answer" in found["reason"]


@pytest.mark.parametrize("wrong", ["text", [], {}, float("nan"), float("inf"), -1, 10**40, True])
async def test_case_271_a_number_of_a_card_that_is_none_is_unknown(wrong: Any, tmp_path: Path) -> None:
    async with peer_center(tmp_path, answer(CARD | {"since": wrong, "lag_seconds": wrong, "state": ["copied"]})):
        found = await asked(tmp_path)
    assert (found["since"], found["lag_seconds"], found["topics"], found["state"]) == (None, None, None, "unknown")


@pytest.mark.parametrize(
    "wrong",
    ["javascript:alert(1)", "//evil.example/", "http://a@evil.example/", "http://a/b", "http://a:0/", "http://a/\n", 1],
)
async def test_case_980_a_card_leads_to_nothing_but_an_address_of_http(wrong: Any, tmp_path: Path) -> None:
    async with peer_center(tmp_path, answer(CARD | {"url": wrong, "replicator": "\x1b[2J" * 9, "source": "x" * 999})):
        found = await asked(tmp_path)
    assert (found["url"], found["replicator"], found["source"]) == ("", "unknown", "unknown")


async def test_case_980_another_center_that_sends_without_end_is_cut_off(tmp_path: Path) -> None:
    async with peer_center(tmp_path, b"HTTP/1.1 200 OK\r\n\r\n", endless=True) as other:
        found = await asked(tmp_path)
        await other.until_cut()
    assert found["state"] == "unknown"


async def test_case_980_another_center_that_says_nothing_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_centers, "CARD_SECONDS", 100 * PATIENCE)
    silent, well = CARD | {"link": "silent"}, answer(CARD | {"replicator": "replicator-well"})
    async with (
        peer_center(tmp_path, None, silent["link"]),
        peer_center(tmp_path, well),
        shown(of_size({"orders": 2}), links=tmp_path) as address,
    ):
        async with asyncio.timeout(PATIENCE):
            while "replicator-well" not in await overview(address):
                pass


async def overview(address: str) -> str:
    async with (
        aiohttp.ClientSession(headers={"Accept": "text/html"}) as session,
        session.get(f"http://{address}/") as page,
    ):
        return await page.text()


async def test_case_980_a_socket_of_another_user_is_asked_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file may belong to a peer, who has left it: the process that listens counts."""
    with of_another_user(socket_of(tmp_path, "other"), monkeypatch) as heard:
        found = await asked(tmp_path)
        assert heard() == b""
    assert "it is of user" in found["reason"]


@contextlib.contextmanager
def of_another_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bytes]]:
    """Yield what has been sent to a socket whose file is ours, and on which another user listens."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        if os.getuid() == 0:
            os.seteuid(65534)
            try:
                listener.listen()
            finally:
                os.seteuid(0)
        else:
            listener.listen()
            own, real = iter([os.getuid()]), os.getuid
            monkeypatch.setattr(os, "getuid", lambda: next(own, real() + 1))

        def heard() -> bytes:
            connection, _ = listener.accept()
            with connection:
                return connection.recv(100)

        yield heard


async def test_case_980_a_file_that_another_user_put_there_is_no_card(tmp_path: Path) -> None:
    socket_of(tmp_path, "a file").touch()
    socket_of(tmp_path, "a link").symlink_to(tmp_path / "elsewhere.sock")
    async with peer_center(tmp_path, answer(CARD)):
        socket_of(tmp_path, "another link").symlink_to(socket_of(tmp_path, "other"))
        assert (await asked(tmp_path))["state"] == "copied"


async def test_case_980_another_control_center_gets_the_card_alone(tmp_path: Path) -> None:
    own = socket_of(tmp_path, "orange-grape")
    async with (
        shown(of_size({"orders": 2}), links=tmp_path),
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(own))) as session,
    ):
        for path, status in {"/card.json": 200, "/": 404, "/links/orange-grape/": 404, "/connectors": 404}.items():
            async with session.get(f"http://link{path}") as found:
                assert found.status == status, path
        assert own.stat().st_mode & 0o777 == (0o666 if os.getuid() == 0 else 0o600)


async def test_case_980_a_socket_that_another_user_has_taken_keeps_no_control_center_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    async with peer_center(tmp_path, answer(CARD), "orange-grape"), contextlib.AsyncExitStack() as stack:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", refused)  # as in a directory with the sticky bit
            address = await stack.enter_async_context(shown(of_size({"orders": 2}), links=tmp_path))
        assert "orange → grape" in await overview(address)


async def test_case_1046_a_directory_with_the_sockets_name_keeps_no_control_center_from_starting(
    tmp_path: Path,
) -> None:
    socket_of(tmp_path, "orange-grape").mkdir()
    async with shown(of_size({"orders": 2}), links=tmp_path) as address:
        assert "orange → grape" in await overview(address)


async def test_case_274_a_second_start_on_a_taken_port_leaves_the_socket_of_the_first(tmp_path: Path) -> None:
    async with shown(of_size({"orders": 2}), links=tmp_path) as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(Exception, match="CONTROL_CENTER_LISTEN"):
            async with serving(web.Application(), Target("127.0.0.1", port), socket_of(tmp_path, "orange-grape")):
                pass
        assert (await asked(tmp_path))["link"] == "orange-grape"


async def test_case_274_a_control_center_that_ends_leaves_the_socket_of_its_successor(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as successor:
        async with shown(of_size({"orders": 2}), links=tmp_path):
            await successor.enter_async_context(shown(of_size({"orders": 2}), links=tmp_path))
        assert (await asked(tmp_path))["reason"] == ""


async def test_case_274_a_directory_of_links_that_is_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(Exception, match="CONTROL_CENTER_LINKS"):
        async with shown(of_size({"orders": 2}), links=file):
            pass


async def test_no_more_links_than_a_page_are_asked(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(2 * PAGE_SIZE):
            stack.enter_context(socket.socket(socket.AF_UNIX)).bind(str(socket_of(tmp_path, str(number))))
        assert len(await PeerCenters(tmp_path, None).cards()) == PAGE_SIZE
