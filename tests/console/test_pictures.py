"""The pictures of the documentation: each view, dark and light, on a desk and on a phone.

``PICTURES=docs/pictures bin/test tests/console/test_pictures.py`` takes them anew: look at them after a change of the
page. The facts are made here: an hour of a link in which two of 43 partitions have stopped.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.console.model.tunnel_end import both_ends
from appliance.console.tunnel import TunnelView
from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.step import Result, passed
from appliance.link.model.problems import Fault
from appliance.link.model.stops import StopKind
from appliance.status.model.snapshot import Snapshot
from appliance.timestamps import utc
from tests.console.browser import Browser
from tests.console.conftest import TOKEN
from tests.real.console.conftest import program
from tests.support.console import of_size, shown
from tests.support.facts import group
from tests.unit.console.test_tunnel_end import SOURCE

__all__ = ["program"]

VIEWS = ("", "topics", "topics/orders", "groups", "tunnel", "doctor", "events", "actions")
SCREENS = {"desktop": (1280, 1250), "phone": (390, 1100)}
BYTES_MAX = 80_000
TOPICS = {"orders": 12, "orders.eu": 8, "orders.returns": 3, "payments": 20}
STEPS = ("settings", "source cluster", "tunnel", "broker names", "destination cluster", "topics", "trial write")
DIAGNOSIS = Diagnosis("destination", utc(time.time()), [Result(name, passed("works"), 0.04) for name in STEPS])


def an_hour(now: int) -> list[Snapshot]:
    """Snapshots of an hour, each ten seconds: a load that comes and goes, and two partitions that stop at its end."""
    base = of_size(TOPICS, now=now)
    stop = Fault(f"orders-3 offset 81204 {StopKind.DELETED.words}", now - 11 * 60_000)
    taken = []
    for step in range(361):
        at, topics = now - (360 - step) * 10_000, []
        load = 1 + 3 * (90 < step < 150) + (step * 7919 % 13) / 13
        for topic in base.topics:
            parts = []
            for part in topic.partitions:
                stopped = stop if topic.name == "orders" and part.partition in (3, 7) and step > 294 else None
                lag = (step - 294) * 70 if stopped else int(load * 40) - 40 + (part.partition * step) % 7
                copied = 900 * step + 10 * part.partition
                known = {"copied": copied, "bytes": copied * 410, "rate": 0.0 if stopped else 90.0 * load}
                late = (step - 294) * 10.0 if stopped else lag / 90
                parts.append(replace(part, lag_records=lag, lag_seconds=late, stopped=stopped, latency_ms=31, **known))
            topics.append(replace(topic, partitions=tuple(parts)))
        owned = [replace(lane, owner=lane.owner and replace(lane.owner, since=now - 2_000_000)) for lane in base.lanes]
        groups = (group("billing", 60), group("reports", 70))
        taken.append(replace(base, at=at, topics=tuple(topics), lanes=tuple(owned), groups=groups))
    return taken


async def test_every_view_can_be_taken_as_a_small_picture(
    seen: Browser, tmp_path: Path, program: Callable[[str], object], request: pytest.FixtureRequest
) -> None:
    """As a dry run and the doctor end, so do the programs here."""
    program(f"print({DIAGNOSIS.as_json()!r} if 'doctor' in __import__('sys').argv else 'would resume orders-3')")
    folder = request.config.rootpath / os.environ.get("PICTURES", str(tmp_path / "pictures"))
    ends = both_ends({"near": SOURCE | {"side": "destination", "troubles": []}, "far": SOURCE | {"troubles": []}})
    own = {"REPLICA_TOPICS_SOURCE_REGEX": ".*", "REPLICA_GROUPS_REGEX": ".*", "CONSOLE_TOKEN": TOKEN}
    hour = an_hour(time.time_ns() // 1_000_000)
    async with shown(hour, tunnel=TunnelView(ends), **own) as address:
        taken = await asyncio.to_thread(_pictures, f"http://{address}/", seen, folder)
    assert len(taken) == (len(VIEWS) + 1) * 4
    assert {path.name: path.stat().st_size for path in taken if path.stat().st_size > BYTES_MAX} == {}


def _pictures(page: str, seen: Browser, folder: Path) -> list[Path]:
    link = f"{page}links/orange-grape/"
    seen.open(f"{link}actions")
    seen.fill("#token", TOKEN)
    seen.click("Give the token")
    seen.click("Doctor")
    seen.click("Run the doctor")
    seen.wait_for("the path works")
    seen.click("Commands")
    seen.click("Dry run")
    seen.wait_for("nothing has changed")
    taken = []
    for dark in (False, True):
        for screen, (width, height) in SCREENS.items():
            seen.looks(dark=dark, width=width)
            for view in ("overview", *VIEWS):
                seen.open(page if view == "overview" else link + view)
                if seen.find(".plot"):
                    seen.wait("the curves", lambda: len(seen.find(".uplot canvas")) == len(seen.find(".plot")))
                name = view.rpartition("/")[0].rstrip("s") or view or "link"
                path = folder / f"{name}-{'dark' if dark else 'light'}-{screen}.webp"
                shown_height = seen.driver.execute_script("return document.documentElement.scrollHeight")
                seen.picture(path, width, min(height, shown_height))
                taken.append(path)
    return taken
