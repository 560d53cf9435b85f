"""The status of both ends of the tunnel, as the end on this VM serves it on TUNNEL_STATUS_LISTEN."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from appliance.console.neighbours import whole_body
from appliance.errors import Unreachable
from appliance.settings.target import Target
from appliance.settings.values import Route, Settings

_SECONDS = 5.0
_BYTES_MAX = 4 * 1024 * 1024
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class TunnelView:
    """The document of both ends, or the reason why it is ``unknown``; ``direct`` is true without a tunnel."""

    document: dict[str, Any] | None = None
    unknown: str = ""
    direct: bool = False


async def tunnel_view(settings: Settings, session: aiohttp.ClientSession) -> TunnelView:
    """Ask the tunnel's end on this VM."""
    at = settings.tunnel.status
    if settings.route is Route.DIRECT:
        return TunnelView(direct=True)
    if at.port == 0:
        return TunnelView(unknown="TUNNEL_STATUS_LISTEN has port 0, so the page cannot know where to ask")
    try:
        status, body = await _asked(at, "/status", session)
    except Unreachable as error:
        return TunnelView(unknown=f"the tunnel's end does not answer on TUNNEL_STATUS_LISTEN={_dialled(at)}: {error}")
    if status == 404:
        return TunnelView(unknown=f"the tunnel's end at {_dialled(at)} is of an older release")
    document = _json_object(body)
    if not isinstance(document.get("near"), dict):
        return TunnelView(
            unknown=f"what answers on TUNNEL_STATUS_LISTEN={_dialled(at)} is no tunnel's end of this release"
        )
    return TunnelView(_both_ends(document))


def _both_ends(document: dict[str, Any]) -> dict[str, Any]:
    """The parts that the page shows; one that is missing is None."""
    unknown = document.get("far_unknown")
    given = unknown if isinstance(unknown, dict) else {}
    return {
        **{name: document.get(name) for name in ("near", "far", "far_at")},
        "far_unknown": {name: given.get(name) for name in ("since", "reason")} if unknown else None,
    }


async def ask_replicator(settings: Settings, session: aiohttp.ClientSession) -> str:
    """Ask this VM's replicator whether it runs; the reason why that is unknown, empty if it answers."""
    at = settings.console.listen
    if at.port == 0:
        return ""  # nobody can know where to ask, and the lanes' owners say who runs them
    try:
        await _asked(at, "/health", session)
    except Unreachable:
        where = f"CONSOLE_LISTEN={_dialled(at)}"
        return f"no replicator answers on {where}: none runs on this VM, or another program has the port"
    return ""


async def tunnel_fault(settings: Settings, session: aiohttp.ClientSession) -> str:
    """The first trouble of the tunnel's end on this VM; empty if it is well, or there is no tunnel to ask."""
    at = settings.tunnel.status
    if settings.route is Route.DIRECT or at.port == 0:
        return ""
    try:
        _, body = await _asked(at, "/health", session)
    except Unreachable:
        return f"unknown: its end on this VM does not answer on TUNNEL_STATUS_LISTEN={_dialled(at)}"
    troubles = _json_object(body).get("troubles")
    if not isinstance(troubles, list):
        return f"unknown: what answers on TUNNEL_STATUS_LISTEN={_dialled(at)} is no tunnel's end"
    return str(troubles[0]) if troubles else ""


def _dialled(at: Target) -> Target:
    """The address at which a page that listens on ``at`` is asked from this VM."""
    return Target(_ANY.get(at.host, at.host), at.port)


async def _asked(at: Target, path: str, session: aiohttp.ClientSession) -> tuple[int, bytes]:
    """The status code and the body of a page of this VM.

    Raises:
        Unreachable: it does not answer, or with too much.
    """
    try:
        async with asyncio.timeout(_SECONDS), session.get(f"http://{_dialled(at)}{path}") as answer:
            return answer.status, await whole_body(answer, _BYTES_MAX)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise Unreachable(str(error) or f"no answer within {_SECONDS:g} s") from error


def _json_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; empty if it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
