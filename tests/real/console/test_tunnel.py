"""The tunnel's status, as the page asks for it: whatever answers on TUNNEL_STATUS_LISTEN."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from appliance.console.commands import Commands
from appliance.console.pages import LinkPages
from appliance.console.serving import serving
from appliance.console.tunnel import TunnelView, tunnel_fault, tunnel_view
from appliance.program import IN_CONTAINER
from appliance.settings.target import Target
from appliance.settings.values import Settings
from tests.support.console import watch_of
from tests.support.facts import settings

ROOT = Path(__file__).parents[3]
NEAR = {"version": "0.2.0", "side": "destination"}


@contextlib.asynccontextmanager
async def answering(path: str, sent: str) -> AsyncIterator[Settings]:
    """The settings of a link on whose TUNNEL_STATUS_LISTEN something answers."""

    async def page(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=sent, content_type="application/json")

    app = web.Application()
    app.add_routes([web.get(path, page)])
    async with serving(app, Target("127.0.0.1", 0), None) as address:
        yield settings(TUNNEL_STATUS_LISTEN=str(address))


async def asked(sent: str) -> TunnelView:
    async with answering("/status", sent) as own, aiohttp.ClientSession() as session:
        return await tunnel_view(own, session)


async def fault(sent: str) -> str:
    async with answering("/health", sent) as own, aiohttp.ClientSession() as session:
        return await tunnel_fault(own, session)


def shown(view: TunnelView) -> str:
    return LinkPages(settings(), watch_of(), Commands(Path("setenv.sh"))).tunnel(view)


@pytest.mark.parametrize(
    "sent",
    [
        *map(json.dumps, ({"near": NEAR}, {"near": NEAR, "far_unknown": {}, "far": 1, "far_at": 2}, {}, [], None, 1)),
        json.dumps({"near": 1}),
        json.dumps({"near": NEAR, "far_unknown": "text"}),
        "[" * 100_000,
        "no JSON",
    ],
)
async def test_case_288_whatever_answers_in_place_of_the_tunnels_end_is_shown_or_unknown(
    sent: str,
) -> None:
    view = await asked(sent)
    assert bool(view.ends) == (json.dumps(NEAR) in sent)
    assert "unknown" in shown(view).lower()


async def test_case_270_a_long_status_is_read_whole() -> None:
    view = await asked(json.dumps({"near": NEAR | {"troubles": ["x" * 1000] * 1000}}))
    assert (view.unknown, view.ends is None) == ("", False)


async def test_case_290_a_long_health_is_read_whole_and_its_first_trouble_shown() -> None:
    assert await fault(json.dumps({"troubles": ["y" * 1000] * 1000})) == "y" * 1000
    assert await fault(json.dumps({"troubles": []})) == ""


@pytest.mark.parametrize("sent", ["[" * 100_000, "no JSON", "[]", "1", "{}", json.dumps({"troubles": "none"})])
async def test_case_291_whatever_answers_in_place_of_the_tunnels_health_is_unknown_and_ends_no_watch(sent: str) -> None:
    assert (await fault(sent)).startswith("unknown: ")


IN_A_CONTAINER = """
from pathlib import Path
from appliance.console.commands import Commands
from appliance.console.model.actions import ACTIONS
from appliance.console.pages import LinkPages, Viewer
from tests.support.console import watch_of
from tests.support.facts import settings
print("doctor" in ACTIONS, LinkPages(settings(), watch_of(), Commands(Path())).doctor(Viewer(True)))
"""


def test_in_a_container_the_page_names_the_doctors_own_container_and_cannot_run_it() -> None:
    own = {**os.environ, "APPLIANCE_PROGRAM": IN_CONTAINER, "PYTHONPATH": str(ROOT)}
    page = subprocess.run([sys.executable, "-c", IN_A_CONTAINER], env=own, capture_output=True, text=True, check=True)
    assert page.stdout.startswith("False ")
    assert "docker-compose run --rm doctor" in page.stdout
    assert "Run the doctor" not in page.stdout
