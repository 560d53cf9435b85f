"""The watcher: collects the facts of both clusters and composes the snapshot; a cluster may fail to answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from appliance.audit.model.progress import AuditProgress
from appliance.clock import now_ms
from appliance.errors import ApplianceError, TimedOut
from appliance.groups.group_service import group_sync
from appliance.groups.model.newest_groups import NewestGroups
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.handle import Link
from appliance.settings.engine import Bound
from appliance.settings.values import Settings
from appliance.status.collect import DestinationFactsCollector, SourceFactsCollector
from appliance.status.model.compose import Composer
from appliance.status.model.compose_partition import lasting
from appliance.status.model.facts import DestinationFacts, Observation, SourceFacts
from appliance.status.model.running import Running, with_running
from appliance.status.model.snapshot import AuditStatus, Snapshot

_SOURCE_SECONDS = 10.0
_DESTINATION_SECONDS = 30.0
"""The first collection reads all of the positions topic."""

_Facts = TypeVar("_Facts")


class Watcher:
    """One watcher of a link, on connections of its own."""

    def __init__(
        self,
        link: Link,
        settings: Settings,
        bound: Bound | None = None,
        newest: NewestGroups | None = None,
        audit: AuditProgress | None = None,
        running: Callable[[], Awaitable[Running]] | None = None,
    ) -> None:
        """``bound``, ``newest`` and ``audit`` are the running replicator's; None: the settings' own, and a preview of
        the groups. ``running`` asks what only the running replicator knows.
        """
        self.snapshot: Snapshot | None = None
        self._composed: Snapshot | None = None
        self._settings = settings
        self._bound = bound
        self._audit = audit
        self._link = link
        self._source_collector = SourceFactsCollector(link, settings.topics.one_writer)
        self._destination_collector = DestinationFactsCollector(link)
        self._source_observed: Observation[SourceFacts] = Observation()
        self._destination_observed: Observation[DestinationFacts] = Observation()
        self._groups = newest or NewestGroups()
        self._running = running
        self._group_sync = group_sync(link, settings) if newest is None else None

    async def collect(self) -> Snapshot:
        """Collect from both clusters at once, since a lag is a difference at one moment; keep the snapshot.

        The first time the destination comes first: which epochs the source is asked for depends on the positions.
        """
        if self.snapshot is None:
            self._destination_observed = await self._observe_destination()
        facts = self._destination_observed.facts
        collecting = self._source_collector.collect(facts.positions if facts else {})
        source = _observe(collecting, self._link.source, self._source_observed, _SOURCE_SECONDS)
        if self.snapshot is None:
            self._source_observed = await source
        else:
            both = await asyncio.gather(source, self._observe_destination())
            self._source_observed, self._destination_observed = both
        observed = self._source_observed, self._destination_observed
        running = await self._running() if self._running else Running()
        snapshot = self._composed = Composer(self._settings, *observed, self._composed, now_ms()).snapshot()
        if self._bound is not None:
            snapshot = replace(snapshot, max_bytes_per_second=self._bound.bytes_per_second)
        if self._audit is not None and self._audit.path and not running.stands_by:
            snapshot = replace(snapshot, audit=self._of_audit(self._audit, snapshot.at))
        if self._settings.groups.wanted and not (running.stands_by and self._group_sync is None):
            snapshot = await self._with_groups(snapshot)
        self.snapshot = with_running(snapshot, running)
        return self.snapshot

    async def _observe_destination(self) -> Observation[DestinationFacts]:
        collecting, before = self._destination_collector.collect(), self._destination_observed
        return await _observe(collecting, self._link.destination, before, _DESTINATION_SECONDS)

    def _of_audit(self, audit: AuditProgress, at: int) -> AuditStatus:
        lag = None if audit.written_to < 0 else max(0, at - audit.written_to) / 1000
        before = self.snapshot.audit.problem if self.snapshot and self.snapshot.audit else None
        return AuditStatus(audit.path, lag, lasting(audit.problem, before, at))

    async def _with_groups(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the groups: those that the replicator knows, else as they are now."""
        if self._group_sync is not None:
            try:
                async with asyncio.timeout(_DESTINATION_SECONDS):
                    await self._group_sync.preview()
            except ApplianceError as error:
                self._groups.unseen(error)
            except TimeoutError:
                self._groups.unseen(TimedOut(f"the groups were not told within {_DESTINATION_SECONDS:g} s"))
            else:
                self._groups.seen(self._group_sync.plans.values(), self._group_sync.stale.values())
        before = self.snapshot.groups_unknown if self.snapshot else None
        unknown = lasting(self._groups.problem, before, snapshot.at)
        return replace(snapshot, groups=self._groups.plans, groups_unknown=unknown)


async def _observe(
    collecting: Awaitable[_Facts], cluster: KafkaCluster, before: Observation[_Facts], timeout: float
) -> Observation[_Facts]:
    """The present facts, or the last ones with the reason why there are none now."""
    try:
        async with asyncio.timeout(timeout):
            return Observation(await collecting)
    except ApplianceError as error:
        problem = str(error)
    except TimeoutError:
        problem = f"the {cluster.settings.side} cluster did not answer within {timeout:g} s"
    # A connection that owes an answer would be used again, and would not answer again.
    await cluster.close()
    return Observation(before.facts, problem)
