"""The check of an existing link: the facts are read here, and judged in ``model/link_facts``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from appliance.driver.model.link_facts import LinkFacts
from appliance.errors import BrokerBusy, LinkRefused, raise_first
from appliance.kafka.client.configs import POLICY, Setting, cleanup_policy, try_describe
from appliance.kafka.client.interface import Cluster
from appliance.link.client.retry import retry_while_busy
from appliance.link.handle import Link
from appliance.link.model.link_check import PositionsTopic, never_ran, was_deleted
from appliance.link.model.naming import PRODUCERS, REGISTRY


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """Reads a link's own topics, and changes nothing."""

    link: Link

    async def require_kept(self) -> None:
        """Check that the link was not deleted; LinkRefused if it was."""
        registry = self.link.registry
        await registry.refresh()
        if registry.ledger.deletion:
            raise LinkRefused(was_deleted(registry.link, registry.ledger.deletion))

    async def positions(self) -> PositionsTopic:
        """The current positions topic with its policy; without partitions when it does not exist."""
        topic = await self.link.positions()
        if not topic.checkpoints:
            return topic
        policy = (await settings_of(self.link.destination, topic.name)).get(POLICY)
        return replace(topic, policy=(policy and policy.value) or "")

    async def existing_positions(self) -> PositionsTopic:
        """The positions topic, which exists. A broker that lags may not show it at first."""

        async def shown() -> PositionsTopic:
            topic = await self.positions()
            if not topic.checkpoints:
                raise BrokerBusy(f"{topic.name} was made and is not shown yet", "LEADER_NOT_AVAILABLE")
            return topic

        return await retry_while_busy(shown)

    async def facts(self, topic: PositionsTopic) -> LinkFacts:
        """The facts beside this positions topic."""
        link, sharing = self.link, self.link.naming.sharing
        await link.registry.refresh()
        sides = {link.destination: sharing.others_write, link.source: sharing.tells_origins}
        return LinkFacts(
            topic,
            await cleanup_policy(link.destination, REGISTRY),
            link.registry.ledger.deletion,
            [await cleanup_policy(cluster, PRODUCERS) for cluster, wanted in sides.items() if wanted],
            link.registry.ledger.own(await link.destination.metadata(None)),
            *await link.source_identity(),
        )

    async def fault(self, topic: PositionsTopic) -> str:
        """The reason that the link must not continue; empty when it may."""
        return (await self.facts(topic)).fault(self.link.naming)

    async def fit_positions(self) -> PositionsTopic:
        """The positions topic of an existing link that may continue; LinkRefused if it is not one."""
        topic = await self.positions()
        if fault := await self.fault(topic):
            raise LinkRefused(fault)
        if not topic.checkpoints:
            raise LinkRefused(never_ran(topic.name))
        return topic


async def settings_of(cluster: Cluster, topic: str) -> Mapping[str, Setting]:
    """The settings of a topic."""
    described, failures = await try_describe(cluster, [topic])
    raise_first(failures.values())
    return described[topic]
