"""The pictures of the documentation, from a link with real data.

``PICTURES=docs/pictures bin/test tests/console/test_pictures.py`` takes them anew: look at them after a change of the
page.
"""

import asyncio
import os
from pathlib import Path

import pytest

from tests.console.browser import Browser
from tests.console.conftest import TOKEN, Center

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]


async def test_every_view_can_be_taken_as_a_picture_in_light_and_in_dark(
    center: Center, seen: Browser, tmp_path: Path
) -> None:
    """Some topics are copied while the pictures are taken, and one partition is stopped."""
    for number, name in enumerate(("orders.eu", "orders.us", "orders.returns")):
        await asyncio.to_thread(center.link.make_topic, center.link.orange, name, 3 + number)
        await asyncio.to_thread(center.link.produce, name, 2000, number, b"x" * 500)
    folder = Path(os.environ.get("PICTURES", str(tmp_path)))
    assert await asyncio.to_thread(_pictures, center, seen, folder) >= 8


def _until_renewed(seen: Browser) -> None:
    before = seen.find(".sub")[0].text
    seen.wait("the next snapshot", lambda: seen.find(".sub")[0].text != before)


def _pictures(center: Center, seen: Browser, folder: Path) -> int:
    seen.open(f"http://{center.address}/")
    seen.wait_for("copied")
    seen.picture(folder / "overview.png")
    seen.open(center.page)
    seen.wait("curves", lambda: len(seen.find(".uplot canvas")) == 5)
    for _ in range(8):
        center.link.produce("orders.eu", 700, 1, b"y" * 500)
        _until_renewed(seen)
    seen.picture(folder / "link.png")
    seen.dark(True)
    seen.open(center.page)
    seen.wait("curves", lambda: len(seen.find(".uplot canvas")) == 5)
    seen.picture(folder / "link-dark.png")
    seen.dark(False)
    for view, name in (("topics", "topics"), ("topics/orders.eu", "topic"), ("tunnel", "tunnel"), ("events", "events")):
        seen.open(center.page + view)
        seen.picture(folder / f"{name}.png")
    seen.open(f"{center.page}actions")
    seen.fill("#token", TOKEN)
    seen.click("Give the token")
    seen.picture(folder / "commands.png")
    return len(list(folder.glob("*.png")))
