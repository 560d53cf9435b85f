"""The groups' continuous sync beside the replicator: its rounds, its problems, and its status."""

from collections.abc import Collection, Iterable

from appliance.clock import loop_seconds
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError
from appliance.groups.group_places import GroupPlaces
from appliance.groups.group_sync import Follows, GroupSync
from appliance.groups.mirror_formats import MirrorCheckpoints
from appliance.groups.model.group_plan import GroupPlan, checkpoints
from appliance.groups.model.newest_groups import NewestGroups, sentences
from appliance.groups.shared_offsets import SharedOffsets
from appliance.link.handle import Link
from appliance.link.model.copy_states import CopyState, effective
from appliance.settings.values import Settings

_GROUPS = "groups "
"""The begin of the subjects of their problems. It has a space, unlike topics' names: partitions are subjects too."""

_SHORTEST = 0.2
"""Share of the interval that stays free between two rounds, however long they take."""


_FOLLOWED = frozenset(state for state in CopyState if state.follows)


def group_sync(link: Link, settings: Settings, states: Collection[CopyState] = _FOLLOWED) -> GroupSync:
    """The sync of a link's groups, by the maps of its copies, to copies in one of these states."""

    async def follows() -> Follows:
        now = await link.lanes.read()
        return lambda topic: effective(now, topic) in states

    translator = SharedOffsets(link) if link.naming.sharing.others_write else link.maps()
    sides = link.source, link.destination, link.naming
    return GroupSync(*sides, settings.groups, translator, follows, GroupPlaces(link))


class GroupService:
    """The sync of a link's groups beside the replicator, a round every GROUPS_SYNC_SECONDS.

    ``newest`` receives the groups; ``problems`` those of their states, and of what could not be read or written.
    """

    name = f"{_GROUPS}of the link"

    def __init__(self, link: Link, settings: Settings, newest: NewestGroups, problems: ProblemLog) -> None:
        self._sync = group_sync(link, settings)
        self._mirror = MirrorCheckpoints(link)
        self._seconds = settings.groups.sync_seconds
        self._newest, self._problems = newest, problems
        self._began = 0.0

    @property
    def pause(self) -> float:
        """The rest of the interval, of which a share stays free however long a round takes."""
        return max(self._began + self._seconds - loop_seconds(), self._seconds * _SHORTEST)

    async def step(self) -> None:
        """Make a round."""
        self._began = loop_seconds()
        try:
            plans = (await self._sync.round()).values()
            unwritten = await self._write_checkpoints(plans)
        except Exception as error:
            self._newest.unseen(error)
            raise
        self._newest.seen(plans, self._sync.stale.values())
        states = {f"{_GROUPS}{state}": ApplianceError(text) for state, text in sentences(plans).items()}
        failures = {f"{_GROUPS}of {name}": error for name, error in {**self._sync.failures, **unwritten}.items()}
        self._problems.keep(_GROUPS, states | failures)

    async def _write_checkpoints(self, plans: Iterable[GroupPlan]) -> dict[str, ApplianceError]:
        """Write MirrorMaker 2's checkpoints if the link has its formats; the failure, if any."""
        try:
            if self._mirror.link.naming.mirror_formats:
                await self._mirror.write(checkpoints(plans))
        except ApplianceError as error:
            return {"MirrorMaker 2's checkpoints": error}
        return {}
