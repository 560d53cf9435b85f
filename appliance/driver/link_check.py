"""The check of an existing link: the facts are read here, and judged in ``model/link_facts``."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.driver.model.link_facts import LinkFacts
from appliance.errors import BrokerBusy, LinkRefused, raise_first
from appliance.kafka.client.configs import POLICY, Setting, cleanup_policy, try_describe
from appliance.kafka.client.interface import Cluster
from appliance.link.client.checkpoint_log import peek_checkpoints
from appliance.link.client.registry import Registry
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.link_check import PositionsTopic, never_ran, was_deleted
from appliance.link.model.naming import PRODUCERS, REGISTRY, Naming


@dataclass(slots=True)
class LinkCheck:
    """Reads a link's own topics, and changes nothing."""

    source: Cluster
    destination: Cluster
    naming: Naming
    registry: Registry = field(init=False)

    def __post_init__(self) -> None:
        self.registry = Registry(self.destination, self.naming.replicator)

    async def require_kept(self) -> None:
        """Check that the link was not deleted; LinkRefused if it was."""
        await self.registry.refresh()
        if self.registry.ledger.deletion:
            raise LinkRefused(was_deleted(self.naming.replicator, self.registry.ledger.deletion))

    async def positions(self) -> PositionsTopic:
        """The current positions topic; without partitions when it does not exist."""
        name = self.naming.positions_topic
        topic = (await self.destination.metadata([name])).topics.get(name)
        if topic is None or not topic.leaders:
            return PositionsTopic(name, "", ())
        policy = (await self.settings_of(name)).get(POLICY)
        checkpoints = await peek_checkpoints(self.destination, name, len(topic.leaders))
        return PositionsTopic(name, (policy and policy.value) or "", checkpoints)

    async def existing_positions(self) -> PositionsTopic:
        """The positions topic, which exists. A broker that lags may not show it at first."""

        async def shown() -> PositionsTopic:
            topic = await self.positions()
            if not topic.checkpoints:
                raise BrokerBusy(f"{topic.name} was made and is not shown yet", "LEADER_NOT_AVAILABLE")
            return topic

        return await retry_while_busy(shown)

    async def settings_of(self, topic: str) -> Mapping[str, Setting]:
        """The settings of a topic at the destination."""
        described, failures = await try_describe(self.destination, [topic])
        raise_first(failures.values())
        return described[topic]

    async def facts(self, topic: PositionsTopic) -> LinkFacts:
        """The facts beside this positions topic."""
        naming, registry = self.naming, self.registry
        await registry.refresh()
        sides = {self.destination: naming.sharing.others_write, self.source: naming.sharing.tells_origins}
        remembering = [cluster for cluster, wanted in sides.items() if wanted]
        source = await self.source.metadata([PRODUCERS] if naming.sharing.tells_origins else [])
        return LinkFacts(
            topic,
            await cleanup_policy(self.destination, REGISTRY),
            registry.ledger.deletion,
            [await cleanup_policy(cluster, PRODUCERS) for cluster in remembering],
            registry.ledger.own(await self.destination.metadata(None)),
            source.cluster_id,
            source.topics.get(PRODUCERS),
        )

    async def fault(self, topic: PositionsTopic) -> str:
        """The reason that the link must not continue; empty when it may."""
        return (await self.facts(topic)).fault(self.naming)

    async def fit_positions(self) -> PositionsTopic:
        """The positions topic of an existing link that may continue.

        Raises:
            LinkRefused: it does not exist, or may not continue.
        """
        topic = await self.positions()
        if fault := await self.fault(topic):
            raise LinkRefused(fault)
        if not topic.checkpoints:
            raise LinkRefused(never_ran(topic.name))
        return topic
