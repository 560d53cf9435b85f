"""Groups return with a failback: what they read at the copies they do not read again, and they miss nothing."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from appliance.commands.failback import failback as module
from appliance.commands.run import last_sync
from appliance.driver.missing_maps import missing_maps
from appliance.errors import BrokerBusy, LinkRefused
from appliance.groups import group_io
from appliance.groups.group_service import group_sync
from appliance.groups.model.group_plan import GroupState
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.groups import ListedGroups
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client import writer
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.handle import Link
from appliance.link.model.copy_states import CopyState
from appliance.link.model.translation import TranslationState
from testbed.cluster import Cluster
from tests.support.engine import Pair
from tests.support.failing_back import copied, delete_records, failed_back, transact_there, write_here, write_there
from tests.support.groups import CLASSIC, CONSUMER, commit, committed, consume, consumer, member, produce_numbered
from tests.support.operating import Killed, everywhere, failed_over, killed
from tests.support.patience import PATIENCE
from tests.support.rows import end

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def pair(pair: Pair) -> Pair:
    """A link that syncs its groups."""
    return replace(pair, groups=True)


def there(pair: Pair) -> Producer:
    return Producer(pair.grape.client_configuration())


def offsets_of(cluster: Cluster, topic: str, count: int) -> list[tuple[int, bytes | None]]:
    """The first records of a partition, by offset and value."""
    reader = consumer(cluster, "reader")
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        found = [reader.poll(PATIENCE) for _ in range(count)]
        return [(message.offset() or 0, message.value()) for message in found if message]
    finally:
        reader.close()


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
async def test_a_group_that_moves_over_and_back_reads_each_record_once_and_follows_again(
    pair: Pair, protocol: str
) -> None:
    topic, group = pair.topic("moving"), f"g-{pair.tag}"
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        values = produce_numbered(pair.producer(), topic, 40)
        read = consume(pair.orange, group, topic, 30, protocol, note="noon")
        await engine.copy_all()
        produce_numbered(pair.producer(), topic, 3, first=500)
        await failed_over(pair)
        values += produce_numbered(there(pair), copy, 20, first=100)
        read += consume(pair.grape, group, copy, 15, protocol, note="one")
        report = await failed_back(pair)
        assert report.groups == {}
        assert {note for _, note in committed(pair.orange, group).values()} == {"one"}
        await copied(engine)
        values += produce_numbered(pair.producer(), topic, 5, first=200)
        rest = consume(pair.orange, group, topic, 20, protocol)
        assert read + rest == values
        await copied(engine)
        sync = group_sync(engine.link(pair.settings()), pair.settings())
        await sync.round()
        (made,) = (await sync.round()).values()
        assert (made.state, made.lag) == (GroupState.SYNCED, 0)


async def test_a_group_is_not_moved_backwards_and_not_while_it_has_a_member_at_the_source(pair: Pair) -> None:
    topic, ahead, busy = pair.topic("held"), f"ahead-{pair.tag}", f"busy-{pair.tag}"
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        produce_numbered(pair.producer(), topic, 10)
        await engine.copy_all()
        for group in (ahead, busy):
            commit(pair.orange, group, {(topic, 0): 4})
        await failed_over(pair)
        produce_numbered(there(pair), copy, 5, first=100)
        consume(pair.grape, busy, copy, 8)
        commit(pair.orange, ahead, {(topic, 0): 9})
        with member(pair.orange, busy, topic):
            report = await failed_back(pair)
    assert report.groups == {ahead: "further at the destination", busy: "consumed at the destination"}
    named = ", ".join(f"{group} ({state})" for group, state in report.groups.items())
    assert f"groups that are not where they are at the copies: {named}" in list(report.lines())
    assert report.document()["groups_not_returned"] == [ahead, busy]
    assert report.document()["groups_not_returned_states"] == report.groups
    assert {at: offset for at, (offset, _) in committed(pair.orange, ahead).items()} == {(topic, 0): 9}
    assert {at: offset for at, (offset, _) in committed(pair.orange, busy).items()} == {(topic, 0): 4}


async def test_case_172_a_failback_that_is_killed_before_its_groups_return_has_them_return_by_the_same_command(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group = pair.topic("killed"), f"g-{pair.tag}"
    copy = pair.naming.destination(topic)

    async def untold(*_: object) -> None:
        return None

    async with pair.engine() as engine:
        produce_numbered(pair.producer(), topic, 10)
        await engine.copy_all()
        await failed_over(pair)
        produce_numbered(there(pair), copy, 5, first=100)
        consume(pair.grape, group, copy, 13)
        with monkeypatch.context() as patch:
            patch.setattr(module, "return_groups", killed)
            with pytest.raises(Killed):
                await failed_back(pair)
            patch.setattr(module, "return_groups", untold)
            with pytest.raises(LinkRefused, match="the groups' offsets are not told"):
                await failed_back(pair)
        assert await everywhere(pair, topic) == {CopyState.FAILING_BACK}
        assert (await failed_back(pair)).groups == {}
        assert {at: offset for at, (offset, _) in committed(pair.orange, group).items()} == {(topic, 0): 13}


async def test_case_173_what_was_copied_back_translates_exactly_in_both_directions(pair: Pair) -> None:
    # Nothing was known of it until `offsets build` had read both logs, which it could not where something had parted.
    topic = pair.topic("map")
    async with pair.engine() as engine:
        for turn in range(2):
            write_here(pair, topic, 10)
            await copied(engine)
            write_here(pair, topic, 3 * turn)
            await failed_over(pair)
            transact_there(pair, topic, 4, commit=True)
            transact_there(pair, topic, 2, commit=False)
            write_there(pair, topic, 5)
            await failed_back(pair)
        write_here(pair, topic, 6)
        await copied(engine)
        assert not await missing_maps(Link(engine.source, engine.destination, pair.naming))
        maps = OffsetMaps(engine.destination, pair.naming)
        await maps.refresh()
        gaps = {offset for gap in await engine.gaps() for offset in range(gap.first, gap.next)}
        copy, pairs = pair.naming.destination(topic), []
        for offset, value in offsets_of(pair.orange, topic, 47):
            found = maps.translate(Partition(topic, 0), offset)
            if offset in gaps:
                assert found.state is TranslationState.UNKNOWN
                continue
            assert found.state is TranslationState.EXACT
            assert found.offset is not None
            assert maps.reverse(Partition(copy, 0), found.offset).offset == offset
            pairs.append((found.offset, value))
        assert pairs == offsets_of(pair.grape, copy, 44)


async def test_case_244_a_map_that_cannot_be_read_for_a_moment_is_not_lost_for_ever(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The link's position moved without it, and nothing that was copied back translated any more.
    topic, read_segments, looked_at = pair.topic("unread"), OffsetMaps._read_segments, set[int]()

    async def busy(self: OffsetMaps, metadata: Any, lane: int, wanted: Any) -> None:
        if "failback" in self._naming.replicator and lane not in looked_at:
            looked_at.add(lane)
            raise BrokerBusy("the leader has moved", "NOT_LEADER_OR_FOLLOWER")
        await read_segments(self, metadata, lane, wanted)

    async with pair.engine() as engine:
        write_here(pair, topic, 10)
        await engine.copy_all()
        await failed_over(pair)
        write_there(pair, topic, 5)
        monkeypatch.setattr(OffsetMaps, "_read_segments", busy)
        await failed_back(pair)
        assert looked_at
        maps = OffsetMaps(engine.destination, pair.naming)
        await maps.refresh()
        translated = [maps.translate(Partition(topic, 0), offset).offset for offset in range(10, 16)]
        assert translated == [*range(11, 17)]


async def test_case_245_groups_that_a_broker_does_not_tell_are_not_left_where_they_were_in_silence(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group = pair.topic("untold"), f"g-{pair.tag}"
    copy, listed = pair.naming.destination(topic), group_io.list_groups

    async def partly(cluster: KafkaCluster) -> ListedGroups:
        found = await listed(cluster)
        groups = {name: each for name, each in found.groups.items() if name != group}
        return ListedGroups(groups, {0: BrokerBusy("a broker does not answer", "COORDINATOR_NOT_AVAILABLE")})

    async with pair.engine() as engine:
        produce_numbered(pair.producer(), topic, 10)
        await engine.copy_all()
        await failed_over(pair)
        for each in (group, f"other-{pair.tag}"):
            consume(pair.grape, each, copy, 8)
        with monkeypatch.context() as patch:
            patch.setattr(group_io, "list_groups", partly)
            patch.setattr(last_sync, "_SECONDS", 2)
            with pytest.raises(LinkRefused, match="the groups' offsets are not told"):
                await failed_back(pair)
        await failed_back(pair)
        assert committed(pair.orange, group) == {(topic, 0): (8, "")}


async def test_case_179_a_group_that_read_nothing_of_the_copys_own_does_not_pass_over_what_parted(pair: Pair) -> None:
    # It was set past what the source held and never came over, which it had not read on either side.
    topic, idle, drained = pair.topic("parted"), f"idle-{pair.tag}", f"drained-{pair.tag}"
    copy = pair.naming.destination(topic)
    async with pair.engine() as engine:
        values = produce_numbered(pair.producer(), topic, 10)
        await engine.copy_all()
        values += produce_numbered(pair.producer(), topic, 5, first=500)
        commit(pair.orange, idle, {(topic, 0): 12})
        commit(pair.orange, drained, {(topic, 0): 4})
        await failed_over(pair)
        consume(pair.grape, drained, copy, 6)
        values += produce_numbered(there(pair), copy, 3, first=100)
        await failed_back(pair)
    assert consume(pair.orange, idle, topic, 6) == values[12:]
    assert consume(pair.orange, drained, topic, 8) == values[10:]


async def test_case_241_a_group_goes_on_with_what_retention_has_left_of_what_parted(pair: Pair) -> None:
    # As the first of it was deleted the rest was passed over too, which no group had read on either side.
    topic, group = pair.topic("retained"), f"g-{pair.tag}"
    async with pair.engine() as engine:
        produce_numbered(pair.producer(), topic, 10)
        await engine.copy_all()
        values = produce_numbered(pair.producer(), topic, 5, first=500)
        commit(pair.orange, group, {(topic, 0): 10})
        await failed_over(pair)
        values += produce_numbered(there(pair), pair.naming.destination(topic), 3, first=100)
        delete_records(pair.orange, topic, 12)
        await failed_back(pair)
    assert committed(pair.orange, group) == {(topic, 0): (12, "")}
    assert consume(pair.orange, group, topic, 6) == values[2:]


async def test_case_242_a_failback_that_was_killed_in_a_transaction_lets_no_group_pass_over_what_parted(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between what parted and what was copied back lay what the killed run had written, and its marker.
    topic, group, end_transaction = pair.topic("aborted"), f"g-{pair.tag}", writer.end_transaction

    async def kill_in_transaction(coordinator: Any, producer: Any, timeout: float) -> None:
        if "failback" in producer.transactional_id and await asyncio.to_thread(end, pair.orange, topic, 0) > 15:
            raise Killed
        await end_transaction(coordinator, producer, timeout)

    async with pair.engine() as engine:
        produce_numbered(pair.producer(), topic, 10)
        await engine.copy_all()
        values = produce_numbered(pair.producer(), topic, 5, first=500)
        commit(pair.orange, group, {(topic, 0): 10})
        await failed_over(pair)
        values += produce_numbered(there(pair), pair.naming.destination(topic), 3, first=100)
        with monkeypatch.context() as patch:
            patch.setattr(writer, "end_transaction", kill_in_transaction)
            with pytest.raises(Killed):
                await failed_back(pair)
        await failed_back(pair)
    assert offsets_of(pair.orange, topic, 18)[15][0] > 15
    assert committed(pair.orange, group) == {(topic, 0): (10, "")}
    assert consume(pair.orange, group, topic, 8) == values
