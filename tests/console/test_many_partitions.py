"""A link of 10,000 partitions in a browser."""

import asyncio
import time

import pytest

from tests.console.browser import Browser
from tests.support.console import of_size, shown

BYTES_MAX = 500_000
TOPICS = {"one-of-ten-thousand": 5_000} | {f"topic-{number:03}": 50 for number in range(100)}


async def test_ten_thousand_partitions_are_shown_in_pages_of_bounded_size(seen: Browser) -> None:
    taken = of_size(TOPICS, now=time.time_ns() // 1_000_000, stopped=2)
    assert sum(1 for _ in taken.partitions) == 10_000
    async with shown(taken, REPLICA_TOPICS_SOURCE_REGEX=".*") as address:
        await asyncio.to_thread(_looked_through, f"http://{address}/links/orange-grape/", seen)


def _looked_through(page: str, seen: Browser) -> None:
    seen.open(page)
    seen.wait_for("10\u202f000", "more: see the stopped topics")
    for view in ("", "topics", "topics/one-of-ten-thousand", "topics/one-of-ten-thousand?sort=lag&down=1", "events"):
        seen.open(page + view)
        assert len(seen.driver.page_source.encode()) < BYTES_MAX, view
    seen.open(f"{page}topics/one-of-ten-thousand")
    seen.wait_for("5\u202f000 found, page 1 of 50")
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
