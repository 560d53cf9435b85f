"""Every view of the control center in a browser, with the data of a real link."""

import asyncio
import json

import aiohttp
import pytest

from tests.console.browser import Browser, browser
from tests.console.conftest import Center
from tests.support.groups import commit

pytestmark = pytest.mark.asyncio(loop_scope="session")

VIEWS = ("", "topics", "topics/orders", "groups", "tunnel", "doctor", "events", "actions")


async def test_the_link_its_numbers_and_its_lanes_are_shown(lasting: Center, seen: Browser) -> None:
    await asyncio.to_thread(_link_shown, lasting, seen)


def _link_shown(center: Center, seen: Browser) -> None:
    seen.open(f"http://{center.address}/")
    seen.wait_for("replicator-orange", "orange → grape", "copied")
    seen.click("replicator-orange")
    seen.wait_for(
        "source cluster orange: answers", "destination cluster grape: answers", "answers on this VM", "tunnel: well"
    )
    tiles = {each.text.partition("\n")[0]: each.text.partition("\n")[2] for each in seen.find(".tile")}
    assert tiles["Copied"].startswith("100")
    assert tiles["Lag"].startswith("0")
    assert int(tiles["Topics"]) >= 1
    seen.wait("five curves", lambda: len(seen.find(".uplot canvas")) == 5)


async def test_topics_are_searched_sorted_and_opened(lasting: Center, seen: Browser) -> None:
    for name in ("orders-eu", "orders-us"):
        await asyncio.to_thread(lasting.link.make_topic, lasting.link.orange, name)
    await asyncio.to_thread(_topics_shown, lasting, seen)


def _topics_shown(center: Center, seen: Browser) -> None:
    seen.open(f"{center.page}topics")
    seen.wait_for("orders-eu", "orders-us")
    seen.click("Topic")
    seen.click("Topic ▴")
    _names_become(seen, "orders-us", "orders-eu", "orders")
    seen.fill("#text", "EU")
    seen.click("Show")
    _names_become(seen, "orders-eu")
    seen.open(f"{center.page}topics")
    seen.click("orders")
    seen.wait_for("copied to orders.copy")
    assert len(seen.find(".scroll tbody tr")) == 2


def _names_become(seen: Browser, *names: str) -> None:
    """Wait until the page that a click has asked for is there."""
    seen.wait(f"the topics {names}", lambda: tuple(row.text for row in seen.find("td.name a")) == names)


async def test_a_group_is_shown_with_its_staleness(lasting: Center, seen: Browser) -> None:
    await asyncio.to_thread(_group_shown, lasting, seen)


def _group_shown(center: Center, seen: Browser) -> None:
    commit(center.link.orange, "billing", {("orders", 0): 50})
    seen.open(f"{center.page}groups")
    seen.wait_for("billing")
    (row,) = (row.text for row in seen.find("tbody tr") if "billing" in row.text)
    assert "unknown" in row or "behind" in row


async def test_no_view_needs_a_script_for_its_numbers(lasting: Center, seen: Browser) -> None:
    await asyncio.to_thread(_link_shown, lasting, seen)
    await asyncio.to_thread(_numbers_without_scripts, lasting)


def _numbers_without_scripts(center: Center) -> None:
    with browser(scripts=False) as plain:
        plain.open(center.page)
        assert "source cluster orange: answers" in plain.text()
        assert [tile.text for tile in plain.find(".tile") if tile.text.startswith("Copied\n100")]
        plain.open(f"{center.page}topics?text=ord")
        assert "orders.copy" in plain.text()


async def test_every_view_is_whole_on_a_narrow_screen_and_reached_by_the_keyboard(lasting: Center) -> None:
    await asyncio.to_thread(_narrow, lasting)


def _narrow(center: Center) -> None:
    with browser(width=360, height=740) as phone:
        for view in VIEWS:
            phone.open(center.page + view)
            wider = phone.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, view
            unlabelled = phone.driver.execute_script(
                "return [...document.querySelectorAll('input:not([type=hidden]), select')]"
                ".filter((field) => !field.labels.length).map((field) => field.outerHTML)"
            )
            assert unlabelled == [], view
            links = phone.find("main a, main button")
            assert all(link.get_attribute("tabindex") != "-1" for link in links), view
        phone.require_no_errors()


async def test_a_page_has_the_headers_that_keep_other_sites_out(lasting: Center) -> None:
    for view in VIEWS:
        status, headers, _ = await fetched(lasting.page + view)
        assert status == 200
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    status, _, body = await fetched(lasting.page, Host="evil.example")
    assert (status, body) == (421, b"'evil.example': not a name of this page: CONTROL_CENTER_NAMES\n")


async def test_all_curves_have_the_same_times_and_a_topics_partitions_have_their_own(lasting: Center) -> None:
    for query, names in (("", ["link"]), ("?range=day&topic=orders", ["orders", "orders-0", "orders-1"])):
        _, _, body = await fetched(f"{lasting.page}history.json{query}")
        history = json.loads(body)
        assert sorted(one.pop("name") for one in history["series"]) == names
        assert {len(curve) for one in history["series"] for curve in one.values()} == {len(history["at"])} != {0}
        assert "restart" in [mark["kind"] for mark in history["marks"]]


async def fetched(address: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    async with aiohttp.ClientSession() as session, session.get(address, headers=headers) as answer:
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, await answer.read()
