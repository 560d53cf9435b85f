"""Pages of a link that is not there, in a real browser: a large one, its readers, and a hostile control center."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.console.browser import Browser
from tests.console.conftest import TOKEN
from tests.support.console import of_size, shown
from tests.support.facts import NOW
from tests.support.peer_center import CARD, PeerCenter, answer, peer_center

BYTES_MAX = 500_000
TOPICS = {"one-of-ten-thousand": 5_000} | {f"topic-{number:03}": 50 for number in range(100)}
VIEWER = "Rk8sQw2nLx6vBt1yHc5mJd9gFp3zTe7U"
SCRIPT = "<script src=/links/other/x.js></script><img src=x onerror=document.title='owned'>"
HOSTILE = CARD | {"replicator": SCRIPT, "source": f'"><script>{SCRIPT}</script>', "url": "javascript:alert(1)"}
HEADERS = b"\r\nContent-Type: text/html\r\nSet-Cookie: session-orange-grape=theirs; Path=/\r\n"
ANSWER = answer(HOSTILE).replace(b"\r\n", HEADERS, 1)


async def test_ten_thousand_partitions_are_shown_in_pages_of_bounded_size(seen: Browser) -> None:
    taken = of_size(TOPICS, now=time.time_ns() // 1_000_000, stopped=2)
    assert sum(1 for _ in taken.partitions) == 10_000
    async with shown(taken, REPLICA_TOPICS_SOURCE_REGEX=".*") as address:
        await asyncio.to_thread(_looked_through, f"http://{address}/links/orange-grape/", seen)


def _looked_through(page: str, seen: Browser) -> None:
    seen.open(page)
    seen.wait_for("10,000", "202 of 10,000 partitions stopped")
    for view in ("", "topics", "topics/one-of-ten-thousand", "topics/one-of-ten-thousand?sort=lag&down=1", "events"):
        seen.open(page + view)
        assert len(seen.driver.page_source.encode()) < BYTES_MAX, view
    seen.open(f"{page}topics/one-of-ten-thousand")
    seen.wait_for("5,000 found, page 1 of 50")
    seen.click("Next")
    seen.wait_for("page 2 of 50")
    assert [row.text for row in seen.find("tbody td:first-child")][:2] == ["100", "101"]
    seen.fill("#text", "4999")
    seen.click("Show")
    seen.wait_for("1 found")


@pytest.mark.parametrize("name", ['a"><script>alert(1)', "a..b", "%2F", "ä"])
async def test_no_name_that_a_cluster_may_send_is_more_than_text(name: str, seen: Browser) -> None:
    async with shown(of_size({name: 1}, now=time.time_ns() // 1_000_000), REPLICA_TOPICS_SOURCE_REGEX=".*") as address:
        await asyncio.to_thread(_opened, f"http://{address}/links/orange-grape/topics", name, seen)


def _opened(page: str, name: str, seen: Browser) -> None:
    seen.open(page)
    seen.wait_for(name)
    seen.click(name)
    seen.wait_for(f"copied to {name}.copy")


async def test_case_992_a_browser_reads_as_a_viewer_and_commands_as_an_operator(seen: Browser) -> None:
    taken = of_size({"orders": 2}, now=time.time_ns() // 1_000_000)
    async with shown(taken, CONSOLE_TOKEN=TOKEN, CONSOLE_VIEWER_TOKEN=VIEWER) as address:
        page = f"{address}/links/orange-grape/"
        await asyncio.to_thread(seen.open, f"http://any:{VIEWER}@{page}topics")
        await asyncio.to_thread(seen.wait_for, "orders")
        await asyncio.to_thread(seen.click, "Commands")
        await asyncio.to_thread(seen.wait_for, "Give the token")
        assert not seen.find("form[action$='/actions/pause']")
        await asyncio.to_thread(seen.fill, "#token", TOKEN)
        await asyncio.to_thread(seen.click, "Give the token")
        await asyncio.to_thread(seen.wait, "the commands", lambda: seen.find("form[action$='/actions/pause']"))


async def test_case_980_script_of_another_center_runs_nowhere_and_gets_no_cookie_and_no_token(
    seen: Browser, tmp_path: Path
) -> None:
    # It was served as a page of this origin: it promoted other links, and the cookie and typed tokens went to it.
    async with (
        peer_center(tmp_path, ANSWER) as other,
        shown(of_size({"orders": 2}, now=NOW), links=tmp_path, CONSOLE_TOKEN=TOKEN) as address,
    ):
        await asyncio.to_thread(_viewed, seen, f"http://{address}/", other)
    assert set(other.heard) == {b"GET /card.json HTTP/1.1\r\nHost: link\r\nConnection: close\r\n\r\n"}


def _viewed(seen: Browser, page: str, other: PeerCenter) -> None:
    seen.open(f"{page}links/orange-grape/actions")
    seen.fill("#token", TOKEN)
    seen.click("Give the token")
    seen.wait_for("Pause")
    seen.open(page)
    seen.wait_for(SCRIPT, "orange → grape")
    assert [link.get_attribute("href") for link in seen.find(".card h2 a")] == [f"{page}links/orange-grape/"]
    assert seen.driver.title == "Control center"
    for path in ("links/other/", "links/other/x.js", "links/orange-grape/%2e%2e/other/"):
        seen.open(page + path)
        assert seen.driver.title != "owned"
        assert seen.text() == "Not Found"
    assert all("404 (Not Found)" in error for error in seen.note_errors())
    seen.errors.clear()
    assert [each["name"] for each in seen.driver.get_cookies()] in ([], ["session-orange-grape"])
    assert "theirs" not in str(seen.driver.get_cookies())
    assert other.heard
