"""The control center over HTTP, of snapshots that are made here."""

import asyncio
import itertools
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from appliance.console.commands import Commands
from appliance.console.model import text
from appliance.console.pages import LinkPages
from appliance.link.model.copy_states import CopyState
from appliance.status.model.compose import Composer
from appliance.status.model.facts import Observation
from tests.support.console import of_size, shown, watch_of
from tests.support.facts import SILENT, settings, snapshot

TOKEN = "Vq3t0cJ9mW5xkR7fLs2hYbNd8pEuZa4G"
OWN = "/links/orange-grape/"


def at(seconds_ago: int) -> int:
    return time.time_ns() // 1_000_000 - seconds_ago * 1000


async def got(address: str, path: str, trusting: ssl.SSLContext | None = None, **headers: str) -> str:
    url, by = f"http{'s' if trusting else ''}://{address}{path}", {"ssl": trusting, "server_hostname": "tunnel.example"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(url, **(by if trusting else {})) as answer,
    ):
        assert answer.status == 200, await answer.text()
        return await answer.text()


@pytest.mark.parametrize("tab", ["", "topics", "topics/orders", "groups", "events", "tunnel", "doctor", "actions"])
async def test_case_281_no_page_shows_the_state_of_an_old_snapshot_as_the_present_one(tab: str) -> None:
    async with shown(of_size({"orders": 2}, now=at(60)), REPLICA_TOPICS_SOURCE_REGEX=".*") as address:
        page = await got(address, OWN + tab)
    assert "what follows is old" in page
    assert "unknown since" in page.partition("<nav")[0]


async def test_case_289_a_silence_that_takes_long_to_see_keeps_the_time_of_its_start() -> None:
    first = snapshot(SILENT, now=at(300))
    watch = watch_of(first, snapshot(SILENT, previous=first, now=at(60)))
    card = LinkPages(settings(), watch, Commands(Path("setenv.sh"))).card()
    assert (card["state"], card["since"], card["stale"]) == ("unknown", first.at, True)


@pytest.mark.parametrize(
    "path",
    [
        "/connectors?expand=status",
        "/connectors/replicator-orange/status",
        "/connectors/replicator-orange/tasks/0/status",
    ],
)
async def test_case_280_a_console_sees_an_old_snapshot_as_unassigned(path: str) -> None:
    async with shown(of_size({"orders": 2}, now=at(60)), REPLICA_TOPICS_SOURCE_REGEX=".*") as address:
        page = await got(address, path)
    assert "RUNNING" not in page
    assert "UNASSIGNED" in page


async def test_fifty_viewers_at_once_see_the_same_page() -> None:
    async with shown(of_size({"orders": 5000}, now=at(0)), REPLICA_TOPICS_SOURCE_REGEX=".*") as address:
        pages = await asyncio.gather(*(got(address, f"{OWN}topics/orders") for _ in range(50)))
    assert len(set(pages)) == 1
    assert f"{text.count(5000)} found" in pages[0]


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("session", b"token=%ff%00", {"Content-Type": "application/x-www-form-urlencoded"}),
        ("session", b"token=%ff", {"Content-Type": "application/x-www-form-urlencoded; charset=none-such"}),
        ("session", b"\xff", {"Content-Type": "application/x-www-form-urlencoded"}),
        ("session", b"\xff", {"Content-Type": "multipart/form-data; boundary=x"}),
        ("session", b"--x\r\n\r\n\xff\r\n--x--", {"Content-Type": "multipart/form-data; boundary=x"}),
        (
            "session",
            b'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n\xff\r\n--x--\r\n',
            {"Content-Type": "multipart/form-data; boundary=x"},
        ),
        ("session", b"token=a", {"Content-Type": "multipart/form-data"}),
        ("actions/pause", b"topic=a%00b", {"Content-Type": "application/x-www-form-urlencoded"}),
        ("actions/nothing", b"", {}),
        ("elsewhere", b"", {}),
        ("session", b"x" * 100_000, {"Content-Type": "application/x-www-form-urlencoded"}),
    ],
    ids=itertools.count(),
)
async def test_case_285_a_form_that_is_none_is_refused_and_is_no_failure(
    path: str, body: bytes, headers: dict[str, str]
) -> None:
    async with (
        shown(of_size({"orders": 2}, now=at(0)), CONSOLE_TOKEN=TOKEN) as address,
        aiohttp.ClientSession() as session,
        session.post(f"http://{address}{OWN}{path}", data=body, headers=headers) as answer,
    ):
        assert 400 <= answer.status < 500, await answer.text()
        assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    ("path", "state", "expected"),
    [
        ("tasks/1/restart", CopyState.ACTIVE, ["resume --topic-name=orders --partition=2"]),
        ("restart", CopyState.ACTIVE, ["resume --topic-name=orders"]),
        ("restart", CopyState.PAUSED, []),
    ],
)
async def test_case_286_a_restart_tries_the_stopped_partitions_of_its_task_and_resumes_nothing_that_is_paused(
    path: str, state: CopyState, expected: list[str], program: Callable[[str], object], tmp_path: Path
) -> None:
    program("import sys; open('seen', 'a').write(' '.join([sys.argv[1], *sys.argv[4:]]) + '\\n')")
    taken = of_size({"orders": 6}, now=at(0), stopped=3)
    taken = replace(taken, topics=tuple(replace(topic, state=state) for topic in taken.topics))
    async with (
        shown(taken, CONSOLE_TOKEN=TOKEN) as address,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
        session.post(f"http://{address}/connectors/replicator-orange/{path}") as answer,
    ):
        assert answer.status == 204
        while len(seen := written(tmp_path / "seen")) < len(expected):
            await asyncio.sleep(0.01)
    assert seen == expected


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "replicator-orange/restart?includeTasks=false&onlyFailed=false", 204),
        ("POST", "replicator-orange/restart?includeTasks=true", 202),
        ("POST", "replicator-orange/restart?onlyFailed=True", 202),
        ("POST", "replicator-orange/tasks/1/restart?includeTasks=true", 204),
        ("POST", "replicator-orange/tasks/999/restart", 404),
        ("POST", "another/restart", 404),
        ("GET", "", 200),
        ("HEAD", "replicator-orange", 200),
        ("GET", "replicator-orange/", 200),
        ("GET", "replicator-orange/status/", 200),
        ("GET", "replicator-orange/tasks/999/status", 404),
        ("GET", "replicator-orange/nothing", 404),
        ("GET", "another", 404),
        ("DELETE", "replicator-orange", 405),
        ("DELETE", "replicator-orange/offsets", 405),
        ("PUT", "replicator-orange/config", 405),
        ("PUT", "replicator-orange/stop", 405),
        ("POST", "", 405),
    ],
)
async def test_case_260_a_console_is_answered_with_the_codes_of_kafka_connect(
    method: str, path: str, status: int
) -> None:
    async with (
        shown(of_size({"orders": 6}, now=at(0)), CONSOLE_TOKEN=TOKEN) as address,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session,
        session.request(method, f"http://{address}/connectors/{path}") as answer,
    ):
        found = await answer.text()
        assert answer.status == status, found
        if status >= 400:
            assert json.loads(found)["error_code"] == status


async def test_case_990_wrong_tokens_from_an_address_keep_nobody_out_who_has_the_right_one_there() -> None:
    page = "/connectors/replicator-orange/restart"
    async with shown(of_size({"orders": 6}, now=at(0)), CONSOLE_TOKEN=TOKEN) as address, aiohttp.ClientSession() as own:

        async def status(token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            async with own.post(f"http://{address}{page}", headers=headers) as answer:
                return answer.status

        assert set(await asyncio.gather(*(status("wrong") for _ in range(20)))) == {401}
        assert await status(TOKEN) == 204


@pytest.mark.parametrize(("plugin", "status"), [("kafka-cloud-replicator", 200), ("another", 404)])
async def test_case_261_akhq_is_told_that_the_plugin_has_no_settings_to_change(plugin: str, status: int) -> None:
    async with (
        shown(of_size({"orders": 2}, now=at(0))) as address,
        aiohttp.ClientSession() as session,
        session.put(f"http://{address}/connector-plugins/{plugin}/config/validate", json={}) as answer,
    ):
        found = await answer.json()
    assert (answer.status, found.get("configs")) == (status, [] if status == 200 else None)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil"}, 421),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "pause"), ("PUT", "resume/"), ("POST", "restart"), ("POST", "tasks/0/restart")]
)
async def test_a_console_commands_nothing_without_the_token_or_for_another_site(
    method: str, path: str, headers: dict[str, str], status: int, program: Callable[[str], object], tmp_path: Path
) -> None:
    program("open('seen', 'a').write('run\\n')")
    async with (
        shown(of_size({"orders": 6}, now=at(0), stopped=3), CONSOLE_TOKEN=TOKEN) as address,
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, f"http://{address}/connectors/replicator-orange/{path}", data=b"x" * 100_000) as answer,
    ):
        assert answer.status == status
    assert not written(tmp_path / "seen")


def written(file: Path) -> list[str]:
    """The whole lines of a file."""
    return file.read_text().splitlines() if file.exists() and file.read_text().endswith("\n") else []


@pytest.mark.parametrize("page", ["", "topics"])
async def test_case_287_topics_that_no_cluster_has_told_are_unknown_and_not_none(page: str) -> None:
    nothing = Composer(settings(), Observation(None, SILENT), Observation(None, SILENT), None, at(0)).snapshot()
    async with shown(nothing) as address:
        shown_page = await got(address, OWN + page)
        card = json.loads(await got(address, "/card.json"))
    assert card["topics"] is None
    assert "<dd>0" not in shown_page
    assert "No topic is found" not in shown_page


async def test_the_control_centers_health_is_the_links_and_it_always_answers() -> None:
    for taken, state in ((None, "unknown"), (of_size({"orders": 2}, now=at(0)), "copying")):
        async with shown(taken) as address, aiohttp.ClientSession() as session:
            async with session.get(f"http://{address}/health") as answer:
                found = await answer.json()
            assert (answer.status, found["link"], found["state"]) == (200, "orange-grape", state)
            assert isinstance(found["troubles"], list)


@pytest.mark.parametrize(
    "path", ["..", "../..", "%2e%2e", ".%2E/card.json", "..%2fcard.json", "..\\x", "%5c..%5c", "..?a"]
)
async def test_case_983_a_path_with_two_dots_is_refused_before_anything_reads_it(path: str) -> None:
    async with shown(of_size({"orders": 2}, now=at(0))) as address:
        for start in (OWN, "/assets/", "/connectors/", "/"):
            reader, writer = await asyncio.open_connection(*address.split(":"))
            writer.write(f"GET {start}{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
            answered = await reader.read()
            writer.close()
            assert answered.startswith(b"HTTP/1.1 400 "), start
            assert answered.endswith(b"a path with .. is refused\n")
