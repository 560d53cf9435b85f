"""Copies with a prefix, on real brokers; and a link whose copies get another name."""

from dataclasses import replace

import pytest

from appliance.errors import LinkRefused
from appliance.settings.values import TopicNaming
from appliance.status.watcher import Watcher
from tests.support.engine import Pair
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_copies_that_have_a_prefix_hold_what_their_sources_do(pair: Pair) -> None:
    prefixed = replace(pair, kind=TopicNaming.PREFIX)
    topic = prefixed.topic("orders", 2)
    for partition in range(2):
        produce(prefixed.producer(), topic, 100, partition)
    async with prefixed.engine() as engine:
        await engine.copy_all()
    assert prefixed.naming.destination(topic) == f"{pair.tag}.{topic}"
    assert [len(rows) for rows in prefixed.compare(topic, 2)] == [100, 100]


@pytest.mark.parametrize("before", TopicNaming)
async def test_a_link_that_is_to_call_its_copies_otherwise_goes_on_only_by_the_names_they_have(
    pair: Pair, before: TopicNaming
) -> None:
    (after,) = set(TopicNaming) - {before}
    known, changed = replace(pair, kind=before), replace(pair, kind=after)
    topic = pair.topic("orders")
    produce(pair.producer(), topic, 10)
    async with known.engine() as engine:
        await engine.copy_all()
    async with changed.engine() as engine:
        with pytest.raises(LinkRefused, match=f"the copy of {topic} is called {known.naming.destination(topic)} "):
            await engine.establish()
        watcher = Watcher(changed.settings(), engine.source, engine.destination)
        snapshot = await watcher.collect()
    assert not snapshot.state.well
    assert snapshot.stopped is not None
    assert "REPLICA_TOPICS_NAMING" in snapshot.stopped.reason
    produce(pair.producer(), topic, 10)
    async with known.engine() as engine:
        await engine.copy_all()
    assert len(known.compare(topic)[0]) == 20
