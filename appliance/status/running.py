"""The running replicator of this VM, asked for what it alone knows."""

import aiohttp

from appliance.errors import Unreachable
from appliance.runtime.local_pages import dialled, json_object, page_at
from appliance.settings.values import Settings
from appliance.status.model.running import Running, running


async def ask_running(settings: Settings, session: aiohttp.ClientSession) -> Running:
    """Ask it on CONSOLE_LISTEN; the reason where there is no answer of this link's replicator."""
    at = settings.console.listen
    if at.port == 0:
        return Running(unknown="CONSOLE_LISTEN has port 0, so nobody can know where to ask")
    where = f"CONSOLE_LISTEN={dialled(at)}"
    try:
        status, body = await page_at(at, "/status", session)
    except Unreachable:
        return Running(
            unknown=f"no replicator answers on {where}: none runs on this VM, or another program has the port"
        )
    document = json_object(body)
    if status == 503 and "state" in document:
        return Running(unknown=f"the replicator at {where} has not looked at both clusters yet")
    try:
        if document["replicator"] == settings.replicator:
            return running(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Running(unknown=f"what answers on {where} is no replicator of this release")
    return Running(unknown=f"what answers on {where} is another link's replicator")
