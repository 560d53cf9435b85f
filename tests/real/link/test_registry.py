"""The registry of a destination's links, on real brokers."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from appliance.errors import BrokerBusy, LinkRefused
from appliance.kafka.protocol.metadata import Metadata
from appliance.link.client import retry
from appliance.link.client.registry import Registry
from appliance.link.model.naming import REGISTRY
from tests.support.administration import configure
from tests.support.engine import OtherLink, Pair
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_registry_that_retention_may_empty_is_refused(pair: Pair) -> None:  # invariant I
    # After it is emptied, each copy goes to the next claim, while its link continues.
    pair.topic("both")
    other = OtherLink(pair.grape, pair.grape, pair.tag)
    async with pair.engine() as ours, other.engine() as theirs:
        await ours.prepare()
        configure(pair.grape, REGISTRY, **{"cleanup.policy": "delete"})
        try:
            with pytest.raises(LinkRefused, match=f"{REGISTRY} has cleanup.policy=delete.*kafka-configs.sh --alter"):
                await theirs.establish()
        finally:
            configure(pair.grape, REGISTRY, **{"cleanup.policy": "compact"})


async def test_a_broker_that_does_not_know_the_registry_yet_lets_nobody_claim_anothers_copy(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:  # invariant I
    topic = pair.topic("lagging")
    other = OtherLink(pair.grape, pair.grape, pair.tag)
    async with pair.engine() as ours, other.engine() as theirs:
        await ours.prepare()
        (replica,) = (await ours.discovery().look()).replicas
        before = end(pair.grape, REGISTRY, 0)
        ask = theirs.destination.metadata

        async def of_the_past(topics: Sequence[str] | None) -> Metadata:
            answer = await ask(topics)
            known = {name: topic for name, topic in answer.topics.items() if name != REGISTRY}
            return replace(answer, topics=known)

        monkeypatch.setattr(theirs.destination, "metadata", of_the_past)
        monkeypatch.setattr(retry, "_PATIENCE", 1.0)
        registry = Registry(theirs.destination, other.naming.replicator)
        with pytest.raises(BrokerBusy):
            await registry.claim({replica.destination_topic: replica.destination_id})
        assert end(pair.grape, REGISTRY, 0) == before
        monkeypatch.undo()
        found = await registry.claim({replica.destination_topic: replica.destination_id})
        assert found[pair.naming.destination(topic)].link == pair.naming.replicator
