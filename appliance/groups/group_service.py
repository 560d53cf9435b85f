"""The groups' continuous sync beside the replicator: its rounds, its log lines, and its status."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from appliance.errors import ApplianceError
from appliance.groups.group_places import GroupPlaces
from appliance.groups.group_sync import Follows, GroupSync
from appliance.groups.mirror_formats import MirrorCheckpoints
from appliance.groups.model.group_plan import GroupPlan, checkpoints
from appliance.groups.model.newest_groups import NewestGroups, told
from appliance.groups.shared_offsets import SharedOffsets
from appliance.kafka.client.interface import Cluster
from appliance.link.client.checkpoint_log import NewestStates
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.copy_states import CopyState, effective
from appliance.link.model.naming import Naming
from appliance.settings.values import Settings

log = logging.getLogger("appliance.failover")

Keep = Callable[[Mapping[str, ApplianceError]], None]
"""Called with the current problems, by subjects that begin with ``GROUPS``; all earlier ones are over."""

GROUPS = "groups "
"""It has a space, unlike topics' names: partitions are subjects too."""

_SHORTEST = 0.2
"""Share of the interval that stays free between two rounds, however long they take."""


_FOLLOWED = frozenset(state for state in CopyState if state.follows)


def group_sync(
    settings: Settings, source: Cluster, destination: Cluster, states: Collection[CopyState] = _FOLLOWED
) -> GroupSync:
    """The sync of a link's groups, by the maps of its copies, to copies in one of these states."""
    naming = Naming.of(settings)
    newest = NewestStates(destination, naming)

    async def follows() -> Follows:
        now = await newest.read()
        return lambda topic: effective(now, topic) in states

    own = OffsetMaps(destination, naming)
    translator = SharedOffsets(source, destination, naming) if naming.sharing.others_write else own
    places = GroupPlaces(destination, naming, settings.topics.replication_factor)
    return GroupSync(source, destination, naming, settings.groups, translator, follows, places)


async def follow_groups(
    settings: Settings, source: Cluster, destination: Cluster, newest: NewestGroups, keep: Keep
) -> None:
    """Sync the groups of a link, a round every this many seconds."""
    sync, seconds = group_sync(settings, source, destination), settings.groups.sync_seconds
    mirror = MirrorCheckpoints(destination, Naming.of(settings), settings.topics.replication_factor)
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        try:
            plans = (await sync.round()).values()
            unwritten = await _mirror(mirror, plans)
        except ApplianceError as error:
            newest.unseen(error)
            keep({f"{GROUPS}of the link": error})
        except Exception as error:  # a defect of ours: the sync would end unnoticed
            log.debug("the groups' sync failed", exc_info=error)
            unexpected = ApplianceError(f"unexpected {type(error).__name__}: {error}")
            newest.unseen(unexpected)
            keep({f"{GROUPS}of the link": unexpected})
        else:
            newest.seen(plans, sync.stale.values())
            states = {f"{GROUPS}{state}": ApplianceError(text) for state, text in told(plans).items()}
            failures = {**sync.failures, **unwritten}
            keep({**states, **{f"{GROUPS}of {name}": error for name, error in failures.items()}})
        await asyncio.sleep(max(seconds - (loop.time() - began), seconds * _SHORTEST))


async def _mirror(mirror: MirrorCheckpoints, plans: Iterable[GroupPlan]) -> dict[str, ApplianceError]:
    """Write MirrorMaker 2's checkpoints if the link has its formats; the failure, if any."""
    try:
        if mirror.naming.mirror_formats:
            await mirror.write(checkpoints(plans))
    except ApplianceError as error:
        return {"MirrorMaker 2's checkpoints": error}
    return {}
