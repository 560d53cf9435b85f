"""Both ends of the tunnel, asked of the end on this VM, on TUNNEL_STATUS_LISTEN."""

from dataclasses import dataclass

import aiohttp

from appliance.console.model.tunnel_end import TunnelEnd, both_ends
from appliance.errors import Unreachable
from appliance.runtime.local_pages import dialled, json_object, page_at
from appliance.settings.values import Route, Settings


@dataclass(frozen=True, slots=True)
class TunnelView:
    """Both ends, or the reason why they are ``unknown``; neither without a tunnel."""

    ends: tuple[TunnelEnd, TunnelEnd] | None = None
    unknown: str = ""


async def tunnel_view(settings: Settings, session: aiohttp.ClientSession) -> TunnelView:
    """Ask the tunnel's end on this VM."""
    at = settings.tunnel.status
    if settings.route is Route.DIRECT:
        return TunnelView()
    if at.port == 0:
        return TunnelView(unknown="TUNNEL_STATUS_LISTEN has port 0, so the page cannot know where to ask")
    try:
        status, body = await page_at(at, "/status", session)
    except Unreachable as error:
        return TunnelView(unknown=f"the tunnel's end does not answer on TUNNEL_STATUS_LISTEN={dialled(at)}: {error}")
    if status == 404:
        return TunnelView(unknown=f"the tunnel's end at {dialled(at)} is of an older release")
    if ends := both_ends(json_object(body)):
        return TunnelView(ends)
    return TunnelView(unknown=f"what answers on TUNNEL_STATUS_LISTEN={dialled(at)} is no tunnel's end of this release")


async def tunnel_fault(settings: Settings, session: aiohttp.ClientSession) -> str:
    """The first trouble of the tunnel's end on this VM; empty if it is well, or there is no tunnel to ask."""
    at = settings.tunnel.status
    if settings.route is Route.DIRECT or at.port == 0:
        return ""
    try:
        _, body = await page_at(at, "/health", session)
    except Unreachable:
        return f"unknown: its end on this VM does not answer on TUNNEL_STATUS_LISTEN={dialled(at)}"
    troubles = json_object(body).get("troubles")
    if not isinstance(troubles, list):
        return f"unknown: what answers on TUNNEL_STATUS_LISTEN={dialled(at)} is no tunnel's end"
    return str(troubles[0]) if troubles else ""
