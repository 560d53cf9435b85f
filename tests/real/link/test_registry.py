"""The registry of a destination's links, on real brokers."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from appliance.errors import BrokerBusy, LinkRefused
from appliance.kafka.protocol.metadata import Metadata
from appliance.link.client import retry
from appliance.link.client.registry import Registry
from appliance.link.model.claims import Claim
from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming import REGISTRY
from appliance.settings.values import TopicNaming
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


async def test_case_364_the_topics_of_a_link_are_one_record_however_often_they_change(pair: Pair) -> None:
    # Each change wrote all claims again, each with the regex.
    shared, regex = replace(pair, kind=TopicNaming.IDENTICAL), pair.naming.topics.regex
    for number in range(3):
        topic = shared.topic(f"orders-{number}")
        shared.make_copy(topic, 1)
    async with shared.engine() as engine:
        found = (await engine.destination.metadata(None)).topics
        copies = {name: topic.id for name, topic in found.items() if name.endswith(pair.tag)}
        assert len(copies) == 3

        async def looked(topics: LinkTopics) -> int:
            """The offsets that a process's look takes in the registry, with the transaction's marker."""
            await Registry(engine.destination, "replicator-nobody")._make()
            before = end(pair.grape, REGISTRY, 0)

            async def still() -> Sequence[str]:
                return list(copies)

            registry = Registry(engine.destination, pair.naming.replicator, shares=True, topics=topics)
            await registry.refresh()
            assert await registry.claim(copies, still=still) == {}
            seen = Registry(engine.destination, "replicator-other")
            await seen.refresh()
            assert seen.topics_told(pair.naming.replicator) == {topics}
            assert seen.claims_of(pair.naming.replicator).keys() == {*copies.items()}
            return end(pair.grape, REGISTRY, 0) - before

        assert await looked(LinkTopics(regex)) == 1 + 3 + 1  # in one transaction
        assert await looked(LinkTopics(regex)) == 0
        assert await looked(LinkTopics(regex, ("payments",))) == 1 + 1
        assert await looked(LinkTopics(regex)) == 1 + 1


async def test_a_link_that_is_deleted_takes_its_record_back_with_its_claims(pair: Pair) -> None:
    topic = pair.topic("orders")
    pair.make_copy(topic, 1)
    copy, link = pair.naming.destination(topic), pair.naming.replicator
    async with pair.engine() as engine:
        topic_id = (await engine.destination.metadata([copy])).topics[copy].id
        sharing = Registry(engine.destination, link, shares=True, topics=pair.naming.topics)
        assert await sharing.claim({copy: topic_id}) == {}
        assert link in sharing.sharing
        await Registry(engine.destination, link).give_up((), Claim(link, 1, deleted_by="me"))
        await sharing.refresh()
        assert sharing.deletion is not None
        assert link not in sharing.sharing
        assert sharing.topics_told(link) == set()
