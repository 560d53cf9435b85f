"""The link's layout while the replicator runs: established at starts, and changed by the replicator itself.

A change is that of ``appliance lanes``: ``lanes.change_layout``. The lanes find that they are fenced and of another
layout, as after the command, and the driver goes on with the new one.

A command comes first: one that has begun a change is not fenced, and a state that a command has not settled yet refuses
this one. Only the newest run places anything: one that finds a newer name in the lanes leaves them alone. A run that
wakes up has to watch a whole window first, and its lanes find within seconds that they are fenced.

If the process is killed within a change, the next start ends that with the layout as it was, and so does this run if
the destination did not answer meanwhile. An operator's change is left to the operator.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from appliance.commands.layout_change import change_layout, find_positions
from appliance.commands.model.lanes_report import Loads
from appliance.commands.run.operation import Choice, Operation
from appliance.driver.establish import Established, Establishing
from appliance.driver.model.lane_balance import Rebalance
from appliance.errors import ApplianceError, LayoutChanging
from appliance.kafka.client.clock import loop_seconds
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord, Owner
from appliance.link.model.layout import Layout
from appliance.link.model.link_check import PositionsTopic, layout_fault
from appliance.settings.values import Settings

log = logging.getLogger("appliance.replicator")

_BY_LOAD = "by load"
_LEFT = "a replicator has left its change unfinished"

_SHOWN_PATIENCE, _SHOWN_PAUSE = 2.0, 0.05
"""Time for a change of ours to be shown, in seconds: a commit is answered before its markers are written."""

_END_PATIENCE = 3.0
"""Time for a change to end after a stop, in seconds; it lasts one or two, while the Spark job ends."""


class RunningLayout:
    """The layout for one run of the replicator, which does one thing to it at a time."""

    def __init__(self, settings: Settings, source: KafkaCluster, destination: KafkaCluster) -> None:
        self._settings = settings
        self._source = source
        self._destination = destination
        self._one_at_a_time = asyncio.Lock()
        self._changing: asyncio.Task[float | None] | None = None
        self._made = False

    async def establish(self, making: Establishing, own: Owner | None = None) -> Established:
        """The link, after a change of ours that is under way, and once one is ended that a replicator has left.

        ``own`` is the name of this run, None before it has one.

        Raises:
            ApplianceError: as ``making.establish``.
        """
        async with self._one_at_a_time:
            ended, until = False, loop_seconds() + (_SHOWN_PATIENCE if self._made else 0.0)
            while True:
                try:
                    found = await making.establish()
                    break
                except LayoutChanging:
                    if loop_seconds() >= until:
                        if ended or not await self._end_unfinished(making.run, own):
                            raise
                        ended, until = True, loop_seconds() + _SHOWN_PATIENCE
                await asyncio.sleep(_SHOWN_PAUSE)
            self._made = False
            return found

    async def change(self, proposed: Rebalance, own: Owner) -> float | None:
        """Change the layout as proposed, and return the stall in seconds; None if another change came first, or
        another replicator.

        A cancel does not end it: then nothing would be copied until the next start.

        Raises:
            LinkRefused: a command works on the link.
            ApplianceError: the destination does not answer, or refuses; the change may have begun.
        """
        self._changing = asyncio.create_task(self._change(proposed, own), name="lanes-change")
        return await asyncio.shield(self._changing)

    async def close(self) -> None:
        """Let a change that is under way end, for some seconds."""
        if self._changing is not None:
            await asyncio.wait([self._changing], timeout=_END_PATIENCE)
            self._changing.cancel()
            await asyncio.gather(self._changing, return_exceptions=True)

    async def _change(self, proposed: Rebalance, own: Owner) -> float | None:
        async with self._one_at_a_time:
            operation = self._operation(_BY_LOAD)
            topic = await find_positions(operation)
            if layout_fault(topic) or _is_superseded(topic.checkpoints, own):
                return None

            def wanted(checkpoints: Sequence[LaneCheckpoint], link: LinkRecord) -> Layout:
                same = link.number == proposed.before.number and not _is_superseded(checkpoints, own)
                return proposed.layout if same else link.layout

            loads = Loads(proposed.loads, proposed.seconds)
            report = await change_layout(operation, wanted, loads, own.run)
            self._made = report.stall > 0  # else nothing was changed
            return report.stall or None

    async def _end_unfinished(self, run: str, own: Owner | None) -> bool:
        """End a change that a replicator has begun, with the layout as it was; False if there is none for this run."""
        operation = self._operation(_LEFT)
        try:
            topic = await find_positions(operation)
            if not _is_of_a_replicator(topic) or (own is not None and _is_superseded(topic.checkpoints, own)):
                return False
            await change_layout(operation, lambda _, link: link.layout, Loads({}), run)
        except ApplianceError as error:
            log.debug("an unfinished change of lanes is not ended", exc_info=error)
            return False
        log.info("lanes kept", extra={"fields": {"lanes": topic.lanes, "why": _LEFT}})
        return True

    def _operation(self, why: str) -> Operation:
        tell: Callable[[str], None] = log.debug
        return Operation(self._settings, Choice(why=why, yes=True), self._source, self._destination, tell)


def _is_superseded(checkpoints: Sequence[LaneCheckpoint], own: Owner) -> bool:
    return own.is_superseded(each.owner for each in checkpoints if each.owner)


def _is_of_a_replicator(topic: PositionsTopic) -> bool:
    """True when a replicator has begun a change that has not ended."""
    return any(each.layout is not None and each.layout.changing and each.layout.run for each in topic.checkpoints)
