"""The last sync of groups before a promotion: their final commits, once the lanes of the copies are fenced."""

import asyncio
from collections.abc import Mapping

from appliance.commands.run.operation import Operation
from appliance.errors import ApplianceError
from appliance.groups.group_service import group_sync
from appliance.groups.group_sync import PLACES, GroupSync
from appliance.groups.model.group_plan import not_synced
from appliance.link.model.copy_states import CopyState

_SECONDS = 30.0
"""Timeout of the last sync of all memberless groups, in seconds."""
_PAUSE = 0.2


async def last_sync(operation: Operation, source_answers: bool = True) -> Mapping[str, str] | None:
    """Sync the groups until nothing is due; the groups that are not synced, with their states.

    None if a broker of the source does not answer: the replicator's commits for them stay.
    """
    settings = operation.settings
    if not settings.groups.wanted:
        return {}
    if not source_answers:
        return None
    sync = group_sync(operation.link, settings, {CopyState.FAILING_OVER})
    if not await settled(sync) or sync.stale:
        return None
    return not_synced(sync.plans.values())


async def are_told(operation: Operation) -> bool:
    """False if the last sync would not be told all groups now; commits nothing."""
    settings, states = operation.settings, {CopyState.ACTIVE, CopyState.FAILING_OVER}
    if not settings.groups.wanted:
        return True
    sync = group_sync(operation.link, settings, states)
    return await settled(sync, commits=False) and not sync.stale


async def settled(sync: GroupSync, *, commits: bool = True) -> bool:
    """Run rounds until nothing is due, or for half a minute; False without an answer."""
    try:
        async with asyncio.timeout(_SECONDS):
            while True:
                if await _is_settled(sync, commits=commits):
                    return True
                await asyncio.sleep(_PAUSE)
    except (ApplianceError, TimeoutError):
        return bool(sync.plans)


async def _is_settled(sync: GroupSync, *, commits: bool) -> bool:
    """True after a complete round that left nothing to commit, or after a complete preview."""
    try:
        plans = await (sync.round() if commits else sync.preview())
    except ApplianceError as error:
        if not error.retriable:
            raise
        return False
    return not sync.failures.keys() - {PLACES} and not (commits and any(plan.commits for plan in plans.values()))
