"""Changes of a link are seen in an open page, without a reload.

All tests share a link. Each leaves it whole, except the last ones: of these, each ends what none after it needs.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import aiohttp
import pytest

from bench.lib.running import free_port
from tests.console.browser import Browser
from tests.console.conftest import TOKEN, Center, control_center, outrun_by_retention
from tests.console.firing import firing
from tests.simulation.scrapes import UP, Series
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_pause_and_a_resume_by_the_page_are_seen_live(lasting: Center, seen: Browser) -> None:
    await asyncio.to_thread(_paused_and_resumed, lasting, seen)


def _give_token(center: Center, seen: Browser) -> None:
    seen.open(f"{center.page}actions")
    seen.fill("#token", TOKEN)
    seen.click("Give the token")


def _paused_and_resumed(center: Center, seen: Browser) -> None:
    seen.open(f"{center.page}actions")
    seen.fill("#token", "wrong")
    seen.click("Give the token")
    seen.wait_for("That is not the token.")
    assert [error for error in seen.note_errors() if "403" not in error] == []
    seen.errors.clear()
    _give_token(center, seen)
    seen.fill("#pause-why", "maintenance of the racks")
    seen.click("Pause: dry run")
    seen.wait_for("Pause, dry run: done", "nothing has changed")
    seen.open(f"{center.page}events")
    assert "maintenance" not in seen.text(), seen.text()
    seen.open(f"{center.page}actions")
    seen.click("Pause now")
    seen.wait_for("Pause: done")
    seen.open(f"{center.page}events")
    seen.wait_for("paused: maintenance of the racks")
    seen.open(center.page)
    seen.wait_for("inactive")
    seen.open(f"{center.page}actions")
    seen.click("Resume: dry run")
    seen.click("Resume now")
    seen.wait_for("Resume: done")
    seen.open(center.page)
    seen.wait("copied again", lambda: seen.find(".badge")[0].text.endswith("copied"))
    seen.open(f"{center.page}actions")
    seen.click("End the session")
    seen.wait("the form for the token", lambda: seen.find("#token"))


async def test_a_reset_needs_the_links_name_and_the_doctor_walks_the_path_at_a_click(
    lasting: Center, seen: Browser
) -> None:
    await asyncio.to_thread(_reset_and_diagnosed, lasting, seen)


def _reset_and_diagnosed(center: Center, seen: Browser) -> None:
    _give_token(center, seen)
    for confirmed in ("orange", "orange-grape"):
        for field, text in {"topic": "orders", "to": "earliest"}.items():
            seen.fill(f"#reset-{field}", text)
        seen.click("Reset: dry run")
        seen.fill("#confirm", confirmed)
        seen.click("Reset now")
        seen.wait_for("type orange-grape to confirm it" if confirmed == "orange" else "Reset: done")
    seen.open(center.page)
    copied = lambda: [tile.text for tile in seen.find(".tile") if tile.text.startswith("Copied\n200")]  # noqa: E731
    seen.wait("every record copied again", copied)
    seen.open(f"{center.page}tunnel")
    seen.wait_for("The source VM's end", "Listens on")
    seen.click("Doctor")
    seen.click("Run the doctor")
    seen.wait_for("the path works")
    assert len(seen.find("tbody tr")) > 10


async def test_a_cluster_that_goes_away_is_unknown_since_then_and_nothing_old_is_shown_as_current(
    lasting: Center, seen: Browser, tmp_path: Path
) -> None:
    await asyncio.to_thread(seen.open, lasting.page)
    await asyncio.to_thread(_until_copied, seen)
    orange = lasting.link.orange
    async with scraped(lasting) as series:
        await _scrapes(series, series.scrapes + 8)
        began = series.scrapes
        await orange.kill(orange.plan.nodes[0].id)
        try:
            await asyncio.to_thread(seen.wait_for, "source cluster orange: unknown since")
            lag = [tile.text for tile in seen.find(".tile") if tile.text.startswith("Lag")]
            assert lag[0].startswith("Lag\nunknown")
            await _scrapes(series, series.scrapes + 8)
            lasted = series.scrapes
        finally:
            await orange.restart(orange.plan.nodes[0].id)
        await asyncio.to_thread(seen.wait_for, "source cluster orange: answers")
        await asyncio.to_thread(_until_copied, seen)
        await _scrapes(series, series.scrapes + 20)
    (fires,) = firing(tmp_path, [series])
    assert not any(fires.get(at) for at in range(began))
    assert any(("SourceUnreachable", "") in fires.get(at, ()) for at in (lasted - 2, lasted - 1))
    assert not any(fires.get(at) for at in (series.scrapes - 2, series.scrapes - 1))


@contextlib.asynccontextmanager
async def scraped(center: Center) -> AsyncIterator[Series]:
    """The replicator's page, scraped again and again; each scrape counts as a quarter of a minute for the alerts."""
    series = Series()
    scraping = asyncio.create_task(_scrape(center, series), name="scrapes")
    try:
        yield series
    finally:
        scraping.cancel()


async def _scrape(center: Center, series: Series) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            body = b""
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"http://{center.replicator_page}/metrics") as answer:
                    body = await answer.read()
            series.add(UP, bool(body))
            series.take(body)
            series.scrapes += 1
            await asyncio.sleep(0.5)


async def _scrapes(series: Series, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while series.scrapes < count:
            await asyncio.sleep(0.1)


async def test_the_charts_and_events_go_on_where_they_were_after_a_restart_of_the_control_center(
    lasting: Center, seen: Browser, tmp_path: Path
) -> None:
    kept = {"CONTROL_CENTER_HISTORY": str(tmp_path), "CONSOLE_TOKEN": TOKEN}
    first = 0.0
    for state in ("paused", "active"):
        async with control_center(lasting.link, **kept) as (console, address):
            page = f"http://{address}/links/orange-grape/"
            await asyncio.to_thread(seen.open, f"{page}actions")
            await asyncio.to_thread(seen.fill, "#token", TOKEN)
            await asyncio.to_thread(seen.click, "Give the token")
            for button in ("{}: dry run", "{} now"):
                title = "Pause" if state == "paused" else "Resume"
                await asyncio.to_thread(seen.click, button.format(title))
            await asyncio.to_thread(seen.wait_for, f"{title}: done")
            await asyncio.to_thread(seen.open, page)
            await asyncio.to_thread(seen.wait, "the curves", lambda: len(seen.find(".uplot canvas")) == 5)
            await asyncio.to_thread(seen.wait_for, "inactive" if state == "paused" else "copied")
            await asyncio.to_thread(seen.wait, "two steps", lambda: len(_times(seen)) > 1)
            first = first or (await asyncio.to_thread(_times, seen))[0]
            assert first == (await asyncio.to_thread(_times, seen))[0]
            await asyncio.to_thread(seen.open, f"{page}events")
            await asyncio.to_thread(seen.wait_for, "paused")  # the cluster remembers the newest state alone
            await console.stop()
    assert await asyncio.to_thread(os.listdir, tmp_path) == ["orange-grape.history"]
    seen.note_errors()
    seen.errors.clear()  # the browser notes the refused connections


def _times(seen: Browser) -> list[float]:
    """The times of the curves."""
    script = "fetch('history.json').then((answer) => answer.json()).then((history) => arguments[0](history.at))"
    return cast("list[float]", seen.driver.execute_async_script(script))


@pytest.mark.release  # held by the test above, and the remedy by tests/real/console/test_pages.py
async def test_a_stop_is_seen_live_with_its_reason_and_the_command_that_resolves_it(
    lasting: Center, seen: Browser
) -> None:
    await asyncio.to_thread(seen.open, lasting.page)
    await asyncio.to_thread(_until_copied, seen)
    await lasting.replicator.kill()
    await asyncio.to_thread(outrun_by_retention, lasting.link)
    async with lasting.link.running("replicate"):
        await asyncio.to_thread(
            seen.wait_for,
            "orders-0: stopped since",
            "bin/appliance resume --topic-name=orders --partition 0 --from earliest",
        )
        await asyncio.to_thread(_resolved_by_the_page, lasting, seen)
        await asyncio.to_thread(_until_copied, seen)
        await asyncio.to_thread(seen.open, f"{lasting.page}topics/orders")
        await asyncio.to_thread(seen.wait_for, "Gaps", "130")
        await asyncio.to_thread(seen.open, f"{lasting.page}events")
        await asyncio.to_thread(seen.wait_for, "gap from offset 100 on", "no longer stopped")


def _resolved_by_the_page(center: Center, seen: Browser) -> None:
    _give_token(center, seen)
    seen.open(center.page)
    seen.wait_for("1 of 2 partitions stopped")
    seen.click("Resolve")
    seen.click("Dry run")
    seen.wait_for("Resume, dry run: done", "nothing has changed")
    seen.click("Resume now")
    seen.wait_for("Resume: done")
    seen.open(center.page)


def _until_copied(seen: Browser) -> None:
    seen.wait("copied", lambda: seen.find(".badge")[0].text.endswith("copied"))


async def test_the_page_stands_while_no_replicator_runs(lasting: Center, seen: Browser) -> None:
    await lasting.replicator.kill()
    await asyncio.to_thread(seen.open, lasting.page)
    await asyncio.to_thread(seen.wait_for, "no replicator of this VM answers on CONSOLE_LISTEN", "copied")


@pytest.mark.release  # held by tests/real/console/test_peer_centers.py
async def test_the_links_of_a_vm_are_shown_side_by_side_and_each_opens_its_own_control_center(
    lasting: Center, seen: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    links = str(tmp_path_factory.mktemp("links"))
    at = f"127.0.0.1:{free_port('127.0.0.1')}"
    other = {"DESTINATION_CLUSTER_ID": "lemon", "CONTROL_CENTER_LINKS": links, "CONTROL_CENTER_LISTEN": at}
    async with (
        control_center(lasting.link, CONTROL_CENTER_LINKS=links) as (_, own),
        control_center(lasting.link, **other) as (neighbour, _),
    ):
        await asyncio.to_thread(seen.open, f"http://{own}/")
        await asyncio.to_thread(seen.wait_for, "orange → grape", "orange → lemon")
        assert f"http://{at}/" in [link.get_attribute("href") for link in seen.find(".card h2 a")]
        await asyncio.to_thread(seen.open, f"http://{at}/links/orange-lemon/topics")
        await asyncio.to_thread(seen.wait_for, "orders.copy")
        await neighbour.kill()
        await asyncio.to_thread(seen.open, f"http://{own}/")
        await asyncio.to_thread(seen.wait_for, "its control center does not answer")


async def test_a_control_center_that_goes_away_leaves_a_page_that_says_so_and_is_grey(
    lasting: Center, seen: Browser
) -> None:
    await asyncio.to_thread(seen.open, lasting.page)
    await asyncio.to_thread(_until_copied, seen)
    await lasting.console.kill()
    await asyncio.to_thread(seen.wait_for, "The control center has not answered since", "what you see is old")
    assert "stale" in seen.find("#live")[0].get_attribute("class")
    seen.note_errors()
    seen.errors.clear()  # the browser notes the refused connections
