"""The status of both ends of the tunnel, as the end on this VM serves it on TUNNEL_STATUS_LISTEN."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from appliance.console.neighbours import whole_body
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
    if settings.route is Route.DIRECT:
        return TunnelView(direct=True)
    at = settings.tunnel.status
    if at.port == 0:
        return TunnelView(unknown="TUNNEL_STATUS_LISTEN has port 0, so the page cannot know where to ask")
    address = Target(_ANY.get(at.host, at.host), at.port)
    try:
        async with asyncio.timeout(_SECONDS), session.get(f"http://{address}/status") as answer:
            text = await whole_body(answer, _BYTES_MAX)
        if answer.status == 404:
            return TunnelView(unknown=f"the tunnel's end at {address} is of an older release")
        document = json.loads(text)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, RecursionError) as error:
        reason = str(error) or f"no answer within {_SECONDS:g} s"
        return TunnelView(unknown=f"the tunnel's end does not answer on TUNNEL_STATUS_LISTEN={address}: {reason}")
    if not isinstance(document, dict) or not isinstance(document.get("near"), dict):
        return TunnelView(unknown=f"what answers on TUNNEL_STATUS_LISTEN={address} is no tunnel's end of this release")
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
    address = Target(_ANY.get(at.host, at.host), at.port)
    try:
        async with asyncio.timeout(_SECONDS), session.get(f"http://{address}/health"):
            return ""
    except (aiohttp.ClientError, OSError, TimeoutError):
        return (
            f"no replicator answers on CONSOLE_LISTEN={address}: none runs on this VM, or another program has the port"
        )


async def tunnel_fault(settings: Settings, session: aiohttp.ClientSession) -> str:
    """The first trouble of the tunnel's end on this VM; empty if it is well, or there is no tunnel to ask."""
    at = settings.tunnel.status
    if settings.route is Route.DIRECT or at.port == 0:
        return ""
    address = Target(_ANY.get(at.host, at.host), at.port)
    try:
        async with asyncio.timeout(_SECONDS), session.get(f"http://{address}/health") as answer:
            troubles = json.loads(await answer.content.read(_BYTES_MAX)).get("troubles") or [""]
            return str(troubles[0])
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, AttributeError):
        return f"unknown: its end on this VM does not answer on TUNNEL_STATUS_LISTEN={address}"
