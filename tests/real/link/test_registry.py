"""The registry of a destination's links, on real brokers."""

import asyncio
import contextlib
import random
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from appliance.errors import BrokerBusy, LinkRefused
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import Metadata
from appliance.link.client import retry
from appliance.link.client.registry import Registry
from appliance.link.model.claim_changes import Changes
from appliance.link.model.claims import Claim
from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming import REGISTRY
from testbed.cluster import Cluster
from tests.conftest import plans
from tests.support.administration import configure
from tests.support.engine import OtherLink, Pair
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clusters(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """Clusters of these tests alone, which change a topic that all links share."""
    orange, grape = (Cluster(plan, tmp_path_factory.mktemp("own")) for plan in plans())
    async with orange, grape:
        yield orange, grape


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
        (replica,) = (await ours.discovery().search()).replicas
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


@contextlib.asynccontextmanager
async def sharing(pair: Pair) -> AsyncIterator["Sharing"]:
    """A link that has three copies to claim, and to share."""
    for number in range(3):
        pair.make_copy(pair.topic(f"orders-{number}"), 1)
    names = [pair.naming.destination(f"orders-{number}-{pair.tag}") for number in range(3)]
    async with pair.engine() as engine:
        found = (await engine.destination.metadata(names)).topics
        yield Sharing(engine.destination, pair.naming.replicator, {name: found[name].id for name in names})


@dataclass(frozen=True, slots=True)
class Sharing:
    """A link of shared copies, as its processes and others see it in the registry."""

    destination: KafkaCluster
    link: str
    copies: Mapping[str, uuid.UUID]

    async def look(self, topics: LinkTopics) -> None:
        """The look of a new process with these settings."""

        async def still() -> Collection[str]:
            return self.copies

        registry = Registry(self.destination, self.link, shares=True, topics=topics)
        await registry.refresh()
        assert await registry.claim(self.copies, still=still) == {}

    async def look_as_an_older_release(self, regex: str) -> None:
        """The same by a release whose claims all have the regex."""
        claim = Claim(self.link, 1, shares=True, topics=LinkTopics(regex))

        async def wanted() -> Changes:
            return {(copy, self.link): claim for copy in self.copies.items()}

        registry = Registry(self.destination, self.link)
        await registry._make()
        await registry._write(wanted)

    async def told(self) -> frozenset[LinkTopics]:
        """The topics that other links expect of it."""
        registry = Registry(self.destination, "replicator-other")
        await registry.refresh()
        assert registry.ledger.claims_of(self.link).keys() == {*self.copies.items()}
        return registry.ledger.topics_of(self.link)


async def test_case_364_the_topics_of_a_link_are_one_record_however_often_they_change(pair: Pair) -> None:
    # Each change wrote all claims again, each with the regex.
    regex = pair.naming.topics.regex
    async with sharing(pair) as link:
        await link.look_as_an_older_release(regex)
        looks = [((), 1 + 3 + 1), ((), 0), (("payments",), 1 + 1), ((), 1 + 1)]
        for excluded, written in looks:  # offsets: of the record, the claims, and the marker of their one transaction
            before = end(pair.grape, REGISTRY, 0)
            await link.look(LinkTopics(regex, excluded))
            assert end(pair.grape, REGISTRY, 0) - before == written
            assert await link.told() == {LinkTopics(regex, excluded)}


async def test_a_link_that_is_killed_at_any_await_tells_its_old_topics_or_its_new_ones(pair: Pair) -> None:
    seed = random.randrange(2**32)
    chance, older = random.Random(seed), pair.naming.topics.regex
    async with sharing(pair) as link:
        for turn in range(12):
            if turn % 3 == 0:
                await link.look_as_an_older_release(f"{older}|{turn}")
            before, wanted = await link.told(), LinkTopics(older, (str(turn),))
            working = asyncio.create_task(link.look(wanted), name="look")
            await asyncio.sleep(chance.uniform(0, 0.05))
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            assert await link.told() in (before, {wanted}), f"seed {seed}"
            await link.look(wanted)
            assert await link.told() == {wanted}, f"seed {seed}"


async def test_a_shared_copy_is_given_up_and_remembered_in_one_transaction(pair: Pair) -> None:
    async with sharing(pair) as link:
        await link.look(LinkTopics("orders.*"))
        registry = Registry(link.destination, link.link)
        before = end(pair.grape, REGISTRY, 0)
        await registry.give_up(link.copies)
        assert end(pair.grape, REGISTRY, 0) - before == 3 + 3 + 1
        assert registry.ledger.former_copies(link.link) == {*link.copies.items()}
        await link.look(LinkTopics("orders.*"))
        await registry.refresh()
        assert registry.ledger.former_copies(link.link) == set()
        assert registry.ledger.claims_of(link.link).keys() == {*link.copies.items()}


async def test_a_link_that_is_deleted_takes_its_record_back_with_its_claims(pair: Pair) -> None:
    topic = pair.topic("orders")
    pair.make_copy(topic, 1)
    copy, link = pair.naming.destination(topic), pair.naming.replicator
    async with pair.engine() as engine:
        topic_id = (await engine.destination.metadata([copy])).topics[copy].id
        sharing = Registry(engine.destination, link, shares=True, topics=pair.naming.topics)
        assert await sharing.claim({copy: topic_id}) == {}
        assert link in sharing.ledger.sharing
        await Registry(engine.destination, link).give_up((), Claim(link, 1, deleted_by="me"))
        await sharing.refresh()
        assert sharing.ledger.deletion is not None
        assert link not in sharing.ledger.sharing
        assert sharing.ledger.topics_of(link) == set()
