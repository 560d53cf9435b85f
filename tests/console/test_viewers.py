"""A viewer and an operator in a real browser, which gives their token as the password of any user."""

import asyncio
import time

from tests.console.browser import Browser
from tests.console.conftest import TOKEN
from tests.support.console import of_size, shown

VIEWER = "Rk8sQw2nLx6vBt1yHc5mJd9gFp3zTe7U"


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
