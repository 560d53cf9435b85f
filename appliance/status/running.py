"""The running replicator of this VM, asked for what it alone knows."""

import aiohttp

from appliance.clock import now_ms
from appliance.errors import Unreachable
from appliance.runtime.local_pages import dialled, json_object, page_at
from appliance.settings.values import Settings
from appliance.status.model.document import STALE_SECONDS
from appliance.status.model.running import Running, running
from appliance.timestamps import milliseconds


async def ask_running(settings: Settings, session: aiohttp.ClientSession) -> Running:
    """Ask it on CONSOLE_LISTEN; the reason where there is no answer of this link's replicator."""
    at = settings.console.listen
    if at.port == 0:
        return Running(unknown="CONSOLE_LISTEN has port 0, so nobody can know where to ask")
    where = f"CONSOLE_LISTEN={dialled(at)}"
    try:
        status, body = await page_at(at, "/status", session)
    except Unreachable as error:
        return Running(unknown=f"no replicator of this VM answers on {where}: {error}")
    document = json_object(body)
    if status == 503 and "state" in document:
        return Running(unknown=f"the replicator at {where} has not looked at both clusters yet")
    try:
        if document["replicator"] == settings.replicator:
            old = now_ms() - milliseconds(document["at"]) > STALE_SECONDS * 1000
            return Running(unknown=f"the replicator at {where} is stuck") if old else running(document)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return Running(unknown=f"what answers on {where} is no replicator of this release")
    return Running(unknown=f"what answers on {where} is another link's replicator")
