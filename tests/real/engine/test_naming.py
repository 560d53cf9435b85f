"""Copies with other names, on real brokers; and a link whose copies get another name."""

from dataclasses import replace

import pytest
from confluent_kafka.admin import NewTopic

from appliance.commands.removal import remove_topics
from appliance.commands.run.operation import Choice
from appliance.errors import LinkRefused
from appliance.link.handle import Link
from appliance.logs.model.span import CopyState
from appliance.settings.values import TopicNaming
from appliance.status.model.messages import remarks
from appliance.status.watcher import Watcher
from appliance.verify.verification import Verification
from tests.support.administration import make_topic
from tests.support.engine import Pair
from tests.support.failing_back import failed_back, write_there
from tests.support.operating import command, failed_over, run_command
from tests.support.records import produce
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_link_of_one_topic_copies_it_to_a_topic_of_any_name_and_nothing_else(pair: Pair) -> None:
    topic = pair.topic("orders")
    pair.topic("other")
    pair.write(topic, 100)
    exact = replace(pair, kind=TopicNaming.EXACT, only=topic)
    async with exact.engine() as engine:
        await engine.copy_all()
        there = await engine.destination.metadata(None)
    assert [len(rows) for rows in exact.compare(topic)] == [100]
    copies = [name for name in there.topics if pair.tag in name and not name.startswith("replicator-")]
    assert copies == [f"the-copy-{pair.tag}"]


def mapped(pair: Pair, *names: str) -> Pair:
    """The link of these topics alone, whose copies have other names."""
    copies = {f"{name}-{pair.tag}": f"the-{name}-{pair.tag}" for name in names}
    return replace(pair, kind=TopicNaming.MAP, names=",".join(map("=".join, copies.items())))


async def test_a_map_copies_two_topics_under_their_names_and_both_fail_over_and_back(pair: Pair) -> None:
    link = mapped(pair, "orders", "payments")
    orders, payments, other = link.topic("orders", 2), link.topic("payments"), link.topic("other", 3)
    for topic in (orders, payments, other):
        produce(link.producer(), topic, 100)
    async with link.engine() as engine:
        await engine.copy_all()
        there = await engine.destination.metadata(None)
        copies = {name for name in there.topics if link.tag in name and not name.startswith("replicator-")}
        assert copies == {f"the-orders-{link.tag}", f"the-payments-{link.tag}"}
        run = Verification(Link(engine.source, engine.destination, link.naming))
        assert {each.state for each in await results_of(run, [], 0)} == {CopyState.EQUAL}
        await failed_over(link)
        write_there(link, payments, 20)
        report = await failed_back(link)
    assert {each.topic: each.copied_back for each in report.partitions} == {orders: 0, payments: 20}
    assert [len(rows) for rows in (*link.compare(orders, 2), *link.compare(payments))] == [100, 0, 120]


async def test_a_topic_joins_a_map_at_any_time_and_leaves_it_once_it_was_given_up(pair: Pair) -> None:
    both, one = mapped(pair, "orders", "payments"), mapped(pair, "payments")
    orders, payments = both.topic("orders"), both.topic("payments")
    for topic in (orders, payments):
        produce(both.producer(), topic, 10)
    for link in (one, both):
        async with link.engine() as engine:
            await engine.copy_all()
    assert [len(both.compare(topic)[0]) for topic in (orders, payments)] == [10, 10]
    async with one.engine() as engine:
        with pytest.raises(LinkRefused, match=f"is called the-{orders} in this link, and {orders} is"):
            await engine.establish()
        async with command(both, Choice(topic=orders, yes=True)) as running:
            await run_command(running, remove_topics)
        await engine.establish()
        snapshot = await Watcher(engine.link(one.settings()), one.settings()).collect()
    assert [topic.name for topic in snapshot.topics] == [payments]


async def test_case_1070_an_exact_copy_is_compared_with_its_own_topic_whatever_others_have_fewer_partitions(
    pair: Pair,
) -> None:
    # Before, the copy counted as that of the source's last topic, and its further partitions as different.
    topic = pair.topic("orders", 2)
    produce(pair.producer(), topic, 10, 1)
    pair.topic("zz-last")
    exact = replace(pair, kind=TopicNaming.EXACT, only=topic)
    async with exact.engine() as engine:
        await engine.copy_all()
        run = Verification(Link(engine.source, engine.destination, exact.naming))
        assert [each.state for each in await results_of(run, [], 0)] == [CopyState.EQUAL] * 2


async def test_status_lists_the_topics_that_are_left_out_though_their_names_match(pair: Pair) -> None:
    everything = replace(pair, everything=True)
    produce(pair.producer(), everything.topic("orders"), 1)
    for name in (f"{pair.tag}.internal", f"orders-{pair.tag}.replica"):
        make_topic(pair.orange, NewTopic(name, 1, 1))
    async with everything.engine() as engine:
        await engine.copy_all()
        snapshot = await Watcher(engine.link(everything.settings()), everything.settings()).collect()
    assert snapshot.excluded == (
        (f"orders-{pair.tag}.replica", "REPLICA_TOPICS_INTERNAL_REGEX matches it"),
        (f"{pair.tag}.internal", "REPLICA_TOPICS_INTERNAL_REGEX matches it"),
    )
    (remark,) = [each for each in remarks(snapshot) if each.startswith("not copied")]
    assert remark.startswith(f"not copied, REPLICA_TOPICS_INTERNAL_REGEX matches it: orders-{pair.tag}.replica, ")
    assert [topic.name for topic in snapshot.topics] == [f"orders-{pair.tag}"]


async def test_a_link_that_is_to_call_its_copies_otherwise_goes_on_only_by_the_names_they_have(pair: Pair) -> None:
    known, changed = replace(pair, kind=TopicNaming.PREFIX), replace(pair, kind=TopicNaming.GLOBAL)
    topic = pair.filled("orders", 10)
    await known.copy_all()
    async with changed.engine() as engine:
        with pytest.raises(LinkRefused, match=f"the copy of {topic} is called {known.copy_of(topic)} "):
            await engine.establish()
        watcher = Watcher(engine.link(changed.settings()), changed.settings())
        snapshot = await watcher.collect()
    assert not snapshot.state.well
    assert snapshot.stopped is not None
    assert "REPLICA_TOPICS_NAMING" in snapshot.stopped.reason
    pair.write(topic, 10)
    assert await known.copied(topic) == [20]


async def test_case_867_between_links_with_other_endings_a_record_comes_back_twice_and_status_says_why(
    pair: Pair,
) -> None:
    forth = replace(pair, everything=True)
    back = replace(
        forth, orange=pair.grape, grape=pair.orange, kind=TopicNaming.GLOBAL, link=f"back-{pair.tag}", target=pair.tag
    )
    topic = forth.filled("orders", 10)
    for link in (forth, back, forth, back):
        async with link.engine() as engine:
            await engine.copy_all()
    came_back = f"{topic}.copy-global.copy-global"
    async with forth.engine() as engine:
        await engine.copy_all()
        at_source, there = await engine.source.metadata(None), await engine.destination.metadata(None)
        snapshot = await Watcher(engine.link(forth.settings()), forth.settings()).collect()
    assert came_back in at_source.topics
    assert {name for name in there.topics if topic in name} == {f"{topic}.copy", f"{topic}.copy-global.copy"}
    assert (came_back, "a copy from grape") in snapshot.excluded
    assert {each.name for each in snapshot.topics} == {topic, f"{topic}.copy-global"}
