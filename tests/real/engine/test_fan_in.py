"""Copies that several links write on purpose: each source's records once, in its order; and links that do not agree."""

import json
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from appliance.commands.positions_adoption import adopt_positions
from appliance.commands.resumption import Choice, resume
from appliance.commands.run.last_sync import settled
from appliance.commands.run.link_lanes import LinkLanes
from appliance.groups.group_service import group_sync
from appliance.groups.group_sync import GroupSync
from appliance.groups.model.group_plan import GroupPlan, GroupState
from appliance.kafka.client.group_offsets import Commit
from appliance.status.watcher import Watcher
from tests.support.administration import configuration, configure, make_topic
from tests.support.engine import Engine, Pair
from tests.support.failing_back import delete_records
from tests.support.groups import commit, committed, consume
from tests.support.mesh import begin
from tests.support.operating import Killed, removed, restored
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


def links(pair: Pair, *shares: bool) -> list[Pair]:
    """Two links into the second cluster: one from the first, and one from the second itself."""
    first = replace(pair, link=f"first-{pair.tag}", fan_in=shares[0])
    return [first, replace(first, orange=pair.grape, link=f"second-{pair.tag}", fan_in=shares[1])]


def produce(link: Pair, topic: str, partition: int, first: int, count: int) -> None:
    producer = Producer(link.orange.client_configuration())
    for number in range(first, first + count):
        producer.produce(topic, json.dumps([link.link or link.tag, number]), partition=partition)
    assert producer.flush(PATIENCE) == 0


def make(both: list[Pair], *partitions: int) -> str:
    topic = f"orders-{both[0].tag}"
    for link, count in zip(both, partitions, strict=True):
        make_topic(link.orange, NewTopic(topic, count, 1))
    return topic


def numbers(link: Pair, topic: str, partition: int) -> dict[str, list[int]]:
    """The numbers of the records in a copy's partition, by their link, in the partition's order."""
    found: dict[str, list[int]] = {}
    for row in link.rows(link.grape, link.copy_of(topic), partition + 1)[partition]:
        origin, number = json.loads(row[2] or b"")
        found.setdefault(origin, []).append(number)
    return found


async def copy_by(both: list[Pair]) -> None:
    """Let both links copy everything, at once."""
    async with both[0].engine() as first, both[1].engine() as second:
        await begin([first, second])


async def test_a_copy_of_two_sources_has_the_records_of_each_once_and_in_order(pair: Pair) -> None:
    both = links(pair, True, True)
    topic = make(both, 2, 3)
    for turn in range(3):
        for link in both:
            produce(link, topic, 1, turn * 100, 100)
        await copy_by(both)
    for link in both:
        produce(link, topic, 0, 0, 1)
    produce(both[1], topic, 2, 0, 50)
    async with both[0].engine() as first, both[1].engine() as second:
        await begin([first, second])
        snapshot = await Watcher(second.link(both[1].settings()), both[1].settings()).collect()
    assert numbers(both[0], topic, 1) == {link.link: list(range(300)) for link in both}
    assert numbers(both[0], topic, 2) == {both[1].link: list(range(50))}
    assert snapshot.state.well, snapshot


async def test_other_producers_and_their_open_transactions_are_no_obstacle_in_a_shared_copy(pair: Pair) -> None:
    link, _ = links(pair, True, True)
    topic = link.topic("orders")
    copy = link.copy_of(topic)
    make_topic(pair.grape, NewTopic(copy, 1, 1))
    other = Producer({**pair.grape.client_configuration(), "transactional.id": f"other-{pair.tag}"})
    other.init_transactions(PATIENCE)
    for turn in range(3):
        other.begin_transaction()
        other.produce(copy, json.dumps(["other", turn]))
        assert other.flush(PATIENCE) == 0
        produce(link, topic, 0, turn * 10, 10)
        async with link.engine() as engine:
            await engine.prepare()
            await engine.copy_until(engine.until_copied(topic, (turn + 1) * 10))
        other.commit_transaction(PATIENCE)
    assert numbers(link, topic, 0) == {"other": [0, 1, 2], link.link: list(range(30))}


async def test_case_725_a_group_that_two_links_sync_skips_no_record_of_either_source(pair: Pair) -> None:
    # The highest place won, and the records of the other source below it were skipped, with a lag of 0.
    both = links(pair, True, True)
    topic, group = make(both, 1, 1), f"g-{pair.tag}"
    copy = both[0].naming.destination(topic)
    async with both[0].engine() as first, both[1].engine() as second:
        for turn in range(4):
            for link in both:
                produce(link, topic, 0, turn * 25, 25)
            await begin([first, second])

        def sync(link: Pair, engine: Engine) -> GroupSync:
            settings = link.settings(REPLICA_GROUPS_REGEX=group)
            return group_sync(engine.link(settings), settings)

        async def plans(*syncs: GroupSync) -> list[GroupPlan]:
            for each in (*syncs, *syncs):
                assert await settled(each)
            return [each.plans[group] for each in syncs]

        commit(pair.orange, group, {(topic, 0): 90})
        one, two = sync(both[0], first), sync(both[1], second)
        (alone,) = await plans(one)
        assert alone.lag == 0
        commit(pair.grape, group, {(topic, 0): 15})
        held, holds = await plans(one, two)
        assert (held.state, holds.lag) == (GroupState.BEHIND, 0)
        assert held.reason.startswith(both[1].naming.replicator)
        place, _ = committed(pair.grape, group)[copy, 0]
        assert place == (holds.partitions[0].target or Commit(-1)).offset
        (restarted,) = await plans(sync(both[0], first))  # the other link has ended
        assert committed(pair.grape, group)[copy, 0][0] == place
        assert restarted.reason == held.reason
    rows = [json.loads(row[2] or b"") for row in pair.rows(pair.grape, copy, 1)[0]]
    last = [index for index, row in enumerate(rows) if row in ([both[0].link, 90], [both[1].link, 15])]
    unread = rows[min(last) :]
    assert [json.loads(value) for value in consume(pair.grape, group, copy, len(unread))] == unread


@pytest.mark.parametrize("shares", [(False, True), (True, False)])
async def test_a_second_link_is_refused_unless_both_share_the_copy(pair: Pair, shares: tuple[bool, bool]) -> None:
    first, second = links(pair, *shares)
    topic = make([first, second], 1, 1)
    produce(first, topic, 0, 0, 10)
    await first.copy_all()
    async with second.engine() as engine:
        await engine.establish()
        found = await engine.discovery().search()
        snapshot = await Watcher(engine.link(second.settings()), second.settings()).collect()
    assert found.replicas == ()
    assert f"belongs to link {first.naming.replicator}" in found.unfit[topic]
    assert ("REPLICA_FAN_IN=yes there too" in found.unfit[topic]) is second.fan_in
    assert [status.stopped.reason for status in snapshot.topics if status.stopped] == [found.unfit[topic]]


async def test_a_link_that_begins_to_share_lets_the_other_in(pair: Pair) -> None:
    first, second = links(pair, False, True)
    topic = make([first, second], 1, 1)
    for link in (first, second):
        produce(link, topic, 0, 0, 10)
    await first.copy_all()
    await copy_by([replace(first, fan_in=True), second])
    assert numbers(first, topic, 0) == {link.link: list(range(10)) for link in (first, second)}


async def test_case_350_a_shared_copy_is_not_deleted_with_one_of_its_links(pair: Pair) -> None:
    # `rm-topic --delete-copies` deleted the records of the other links, and with identical names those of producers.
    both = links(pair, True, True)
    topic = make(both, 1, 1)
    for link in both:
        produce(link, topic, 0, 0, 10)
        await link.copy_all()
    report = await removed(both[0], topic, delete_copies=True)
    assert [each.deleted for each in report.removed] == [False]
    assert numbers(both[0], topic, 0) == {link.link: list(range(10)) for link in both}


async def lose(link: Pair, topic: str, lost: str) -> None:
    """Let the link lose the topic's position, by a removal, or all positions."""
    if lost == "the position":
        await removed(link, topic)
        await restored(link, topic)
    else:
        link.delete_positions()
        assert await adopt_positions(link.settings(), lambda _: None)


@pytest.mark.parametrize("lost", ["the position", "all positions"])
async def test_case_351_what_a_link_has_copied_to_a_shared_copy_is_not_copied_again_without_a_position(
    pair: Pair, lost: str
) -> None:
    # A shared copy that is not empty was taken for others': without a position everything was copied once more.
    link, _ = links(pair, True, True)
    topic = link.topic("orders")
    produce(link, topic, 0, 0, 10)
    await link.copy_all()
    await lose(link, topic, lost)
    async with link.engine() as engine:
        reason = await engine.until_all_stopped(topic, 1)
    assert "no position accounts for" in reason
    assert numbers(link, topic, 0) == {link.link: list(range(10))}


async def test_case_356_a_lane_that_is_new_after_an_adoption_copies_nothing_twice(pair: Pair) -> None:
    # The partition had moved to a lane in its first epoch, which took itself for one that had never written.
    link, _ = links(pair, True, True)
    topic = make([link], 16)
    for partition in range(16):
        produce(link, topic, partition, 0, 3)
    await link.copy_all()
    link.delete_positions()
    assert await adopt_positions(link.settings(LANES="8"), lambda _: None)
    async with link.engine() as engine:
        await engine.until_all_stopped(topic, 16)
    found = [numbers(link, topic, partition)[link.link] for partition in range(16)]
    assert found == [list(range(3))] * 16


@pytest.mark.parametrize("fan_in", [True, False], ids=["shared", "alone"])
@pytest.mark.parametrize("lost", ["the position", "the position alone", "all positions"])
async def test_case_640_a_copy_that_retention_has_emptied_is_not_filled_again_without_a_position(
    pair: Pair, lost: str, fan_in: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A shared copy without records of its link was taken for one in which it had never written.
    link = replace(pair, fan_in=fan_in)
    topic = link.topic("orders")
    produce(link, topic, 0, 0, 10)
    await link.copy_all()
    if lost == "the position alone":  # the command was killed before it had withdrawn the claim for good
        forget = LinkLanes.forget

        async def killed(self: LinkLanes, *arguments: object) -> None:
            await forget(self, *arguments)  # type: ignore[arg-type]
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(LinkLanes, "forget", killed)
            with pytest.raises(Killed):
                await removed(link, topic)
        await restored(link, topic)
    else:
        await lose(link, topic, lost)
    delete_records(link.grape, link.copy_of(topic), -1)
    for _ in range(2):  # a start that is killed before the operator has spoken forgets nothing
        async with link.engine() as engine:
            reason = await engine.until_all_stopped(topic, 1)
        assert "no position says how far" in reason
    produce(link, topic, 0, 10, 5)
    assert await resume(link.settings(), Choice(topic, 0, "10"), lambda _: None) == 1
    await link.copy_all()
    assert numbers(link, topic, 0) == {link.link or link.tag: list(range(10, 15))}


async def test_case_667_links_of_one_copy_do_not_undo_each_others_settings(pair: Pair) -> None:
    # Each look of each link set the copy's retention and clean-up policy to those of its own source.
    both = links(pair, True, True)
    topic = make(both, 1, 1)
    configure(both[0].orange, topic, **{"retention.ms": "7200000"})
    configure(both[1].orange, topic, **{"retention.ms": "3600000", "segment.ms": "3600000"})
    copy = both[0].naming.destination(topic)
    async with both[0].engine() as first, both[1].engine() as second:
        discoveries = [first.discovery(), second.discovery()]
        for _ in range(6):
            for discovery in discoveries:
                assert (await discovery.search()).unfit == {}
    held = configuration(pair.grape, copy)
    assert held["retention.ms"] == "7200000"
    assert "segment.ms" not in held


async def test_case_668_a_compacted_topic_is_copied_to_a_shared_copy_only_if_each_key_has_one_writer(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    # Of equal keys from several clusters the copy kept one, and nothing was said.
    link, _ = links(pair, True, True)
    topic = link.topic("orders", **{"cleanup.policy": "compact"})
    async with link.engine() as engine:
        await engine.establish()
        found = await engine.discovery().search()
        snapshot = await Watcher(engine.link(link.settings()), link.settings()).collect()
        one_writer = await engine.discovery(REPLICA_ONE_WRITER_PER_KEY="yes").search()
    assert "REPLICA_ONE_WRITER_PER_KEY=yes" in found.unfit[topic]
    assert [status.stopped.reason for status in snapshot.topics if status.stopped] == [found.unfit[topic]]
    assert {replica.source_topic for replica in one_writer.replicas} == {topic}
    held = configuration(pair.grape, link.copy_of(topic))
    assert (held["cleanup.policy"], held["retention.ms"], held["retention.bytes"]) == ("delete", "-1", "-1")
    (line,) = [vars(record)["fields"] for record in caplog.records if record.getMessage() == "settings left out"]
    assert line["cause"].startswith("cleanup.policy: no link compacts a shared copy")
