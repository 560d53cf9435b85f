"""A hostile control center of the same user runs nothing in the operator's page, and hears nothing of its session."""

import asyncio
from pathlib import Path

from tests.console.browser import Browser
from tests.console.conftest import TOKEN
from tests.support.console import of_size, shown
from tests.support.facts import NOW
from tests.support.neighbour import CARD, Neighbour, answer, neighbour

SCRIPT = "<script src=/links/other/x.js></script><img src=x onerror=document.title='owned'>"
HOSTILE = CARD | {"replicator": SCRIPT, "source": f'"><script>{SCRIPT}</script>', "url": "javascript:alert(1)"}
HEADERS = b"\r\nContent-Type: text/html\r\nSet-Cookie: session-orange-grape=theirs; Path=/\r\n"
ANSWER = answer(HOSTILE).replace(b"\r\n", HEADERS, 1)


async def test_case_980_script_of_a_neighbour_runs_nowhere_and_gets_no_cookie_and_no_token(
    seen: Browser, tmp_path: Path
) -> None:
    # It was served as a page of this origin: it promoted other links, and the cookie and typed tokens went to it.
    async with (
        neighbour(tmp_path, ANSWER) as other,
        shown(of_size({"orders": 2}, now=NOW), links=tmp_path, CONSOLE_TOKEN=TOKEN) as address,
    ):
        await asyncio.to_thread(_viewed, seen, f"http://{address}/", other)
    assert set(other.heard) == {b"GET /card.json HTTP/1.1\r\nHost: link\r\nConnection: close\r\n\r\n"}


def _viewed(seen: Browser, page: str, other: Neighbour) -> None:
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
