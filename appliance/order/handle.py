"""An open order: its clusters, its names, and the facts of all clusters as they are now."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.clock import now_ms
from appliance.errors import ApplianceError
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.checkpoint_log import NewestStates
from appliance.link.client.clusters import order_cluster
from appliance.link.client.membership import members
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.naming import Naming
from appliance.logs.model.span import Span
from appliance.order.model.changes import places_of
from appliance.order.model.cluster_facts import ClusterFacts, compose
from appliance.order.model.view import OrderView
from appliance.order.names import BEATS_LOG, order_naming
from appliance.order.pulse import misnamed, newest_beats
from appliance.settings.order_values import OrderSettings

_PATIENCE = 20.0
"""Seconds in which a cluster has to answer, to be known."""


_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class OrderHandle:
    """An open order; with ``single`` all partitions of a topic have one order."""

    clusters: Mapping[str, KafkaCluster]
    naming: Naming
    single: bool = False
    _lanes: dict[str, NewestStates] = field(init=False, default_factory=dict)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, settings: OrderSettings) -> AsyncIterator["OrderHandle"]:
        """The order of these settings; no cluster is dialled before it is asked."""
        async with contextlib.AsyncExitStack() as stack:
            clusters = {
                each.id: await stack.enter_async_context(order_cluster(settings, each.id)) for each in settings.clusters
            }
            yield cls(clusters, order_naming(settings.topics_regex), settings.partitions == 1)

    async def maps(self, cluster: str, topic: str, partition: int) -> tuple[OffsetMaps, Sequence[Partition]]:
        """The maps of offsets of a cluster, and the origins of a partition of T that it knows."""
        maps = OffsetMaps(self.clusters[cluster], self.naming)
        await maps.read(())
        origins = places_of(Partition(topic, partition), dict(maps.positions()), single=self.single)
        sources = [origin.of(topic) for origin in origins]
        await maps.read(sources)
        return maps, sources

    async def view(self, patience: float = _PATIENCE, without: Mapping[str, str] = _NONE) -> OrderView:
        """The view of all clusters, ``without`` reading those that are out of reach for a reason."""
        return compose(await self.facts(patience, without), now_ms(), single=self.single)

    async def facts(
        self, patience: float = _PATIENCE, without: Mapping[str, str] = _NONE
    ) -> dict[str, ClusterFacts | str]:
        """Read all clusters at once; of one that does not answer, the reason."""
        read = {name: self._facts(name, patience) for name in self.clusters if name not in without}
        facts = dict(zip(read, await asyncio.gather(*read.values()), strict=True))
        return {name: facts.get(name) or without[name] for name in self.clusters}

    async def _facts(self, name: str, patience: float) -> ClusterFacts | str:
        try:
            async with asyncio.timeout(patience):
                return await self._read(name, self.clusters[name])
        except TimeoutError:
            await self.clusters[name].close()  # a missing answer on a connection would delay all later ones
            return f"it does not answer within {patience:g} s"
        except ApplianceError as error:
            return str(error)

    async def _read(self, name: str, cluster: KafkaCluster) -> ClusterFacts:
        """The lanes first, where they were left the last time: the logs of T have at least what these say."""
        lanes = await self._lanes.setdefault(name, NewestStates(cluster, self.naming)).checkpoints()
        metadata = await cluster.metadata(None)
        copied = self.naming.copied(metadata.topics)
        topics = {topic.name: len(topic.leaders) for topic in copied}
        names = {*topics, *map(self.naming.destination, topics), BEATS_LOG.topic} & metadata.topics.keys()
        logs = [Partition(name, number) for name in names for number in range(len(metadata.topics[name].leaders))]
        starts = (await try_offsets(cluster, metadata, logs, Bound.START)).values
        ends = (await try_offsets(cluster, metadata, logs, Bound.STABLE_END)).values
        spans = {log: Span(starts[log], max(starts[log], ends[log])) for log in logs if log in starts and log in ends}
        beats = await newest_beats(cluster, metadata, spans[BEATS_LOG]) if BEATS_LOG in spans else None
        if beats and beats[-1][1].cluster != name:
            raise misnamed(beats[-1][1].cluster)
        processes = None
        with contextlib.suppress(ApplianceError):  # the key may not describe the group
            processes = await members(cluster, self.naming.replicator)
        return ClusterFacts(
            [lane.promise for lane in lanes],
            {key: record for lane in lanes for key, record in lane.orders.items()},
            topics,
            spans,
            [gap for lane in lanes for gap in lane.gaps.values()],
            {topic.name: topic.id for topic in copied},
            beats,
            processes,
        )
