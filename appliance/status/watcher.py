"""Looks at both clusters at once, again and again, and draws the snapshot; a silent cluster is a fact like others."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.link.model.naming import Naming
from appliance.settings.bound import Bound
from appliance.settings.values import Settings
from appliance.status.collect import DestinationLook, SourceLook, now
from appliance.status.model.compose import compose
from appliance.status.model.facts import DestinationFacts, SourceFacts, Told
from appliance.status.model.snapshot import Snapshot

_SOURCE_SECONDS = 10.0
_DESTINATION_SECONDS = 30.0
"""The first look reads all of the positions topic."""

_Facts = TypeVar("_Facts")


class Watcher:
    """One watcher of a link, on connections of its own."""

    def __init__(
        self, settings: Settings, source: KafkaCluster, destination: KafkaCluster, bound: Bound | None = None
    ) -> None:
        """``bound`` is the running replicator's; None: what the settings say."""
        naming = Naming.of(settings)
        self.snapshot: Snapshot | None = None
        self._settings = settings
        self._bound = bound
        self._source = source
        self._destination = destination
        self._source_look = SourceLook(source, naming)
        self._destination_look = DestinationLook(destination, naming)
        self._source_told: Told[SourceFacts] = Told()
        self._destination_told: Told[DestinationFacts] = Told()

    async def look(self) -> Snapshot:
        """Look, and keep the snapshot. Both at once: a lag is the difference of what both say at one moment."""
        known = self._destination_told.facts
        async with asyncio.TaskGroup() as looking:
            source = looking.create_task(
                _told(
                    self._source_look.look(known.positions if known else {}),
                    self._source,
                    self._source_told,
                    _SOURCE_SECONDS,
                ),
                name="look-source",
            )
            destination = looking.create_task(
                _told(self._destination_look.look(), self._destination, self._destination_told, _DESTINATION_SECONDS),
                name="look-destination",
            )
        self._source_told, self._destination_told = source.result(), destination.result()
        snapshot = compose(self._settings, self._source_told, self._destination_told, self.snapshot, now())
        if self._bound is not None:
            snapshot = replace(snapshot, max_bytes_per_second=self._bound.bytes_per_second)
        self.snapshot = snapshot
        return snapshot


async def _told(look: Awaitable[_Facts], cluster: KafkaCluster, before: Told[_Facts], patience: float) -> Told[_Facts]:
    """What the look finds, or what was found before with the reason why it is of the past."""
    try:
        async with asyncio.timeout(patience):
            return Told(await look)
    except ApplianceError as error:
        trouble = str(error)
    except TimeoutError:
        trouble = f"the {cluster.settings.side} cluster did not answer within {patience:g} s"
    # A connection on which an answer is missing would be asked again, and be silent again.
    await cluster.close()
    return Told(before.facts, trouble)
