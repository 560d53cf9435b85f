"""What a source had when it was lost, and never came over, is kept in a topic of its own if the operator wants that."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from appliance.commands.failback.diverged import _DivergedCopier
from appliance.commands.run.operation import Choice
from appliance.engine.model.chunk import Chunk
from appliance.errors import BrokerRefused, LinkRefused
from appliance.kafka.protocol.metadata import Metadata
from tests.support.administration import configure, make_topic
from tests.support.engine import Pair, delete_topic
from tests.support.failing_back import Logs, copied, delete_records, failed_back, kept, write_here, write_there
from tests.support.operating import Killed, failed_over, killed
from tests.support.patience import PATIENCE
from tests.support.records import produce
from tests.support.rows import read_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEEP = Choice(yes=True, keep_diverged=True)


async def test_what_never_came_over_is_kept_with_its_partitions_and_added_to_by_the_next_failback(pair: Pair) -> None:
    named = Pair(pair.orange, pair.grape, pair.tag, everything=True)
    topic, other = named.topic("kept", 2), named.topic("nothing")
    async with named.engine() as engine:
        for partition in range(2):
            produce(named.producer(), topic, 10, partition)
        write_here(named, other, 3)
        await engine.copy_all()
        produce(named.producer(), topic, 4, 0)
        transactional = named.producer(**{"transactional.id": f"lost-{named.tag}"})
        transactional.init_transactions(PATIENCE)
        for commits in (False, True):
            transactional.begin_transaction()
            produce(transactional, topic, 5 + commits, 1)
            if commits:
                transactional.commit_transaction(PATIENCE)
            else:
                transactional.abort_transaction(PATIENCE)
        diverged = [read_rows(named.orange, topic, partition)[10:] for partition in range(2)]
        assert [len(rows) for rows in diverged] == [4, 6]
        await failed_over(named)
        write_there(named, topic, 50)
        report = await failed_back(named, KEEP)
        assert [(each.topic, each.partition, each.kept) for each in report.partitions if each.kept is not None] == [
            (topic, 0, 4),
            (topic, 1, 6),
        ]
        assert f"{topic}-1: 6 of these records are kept in {named.naming.diverged(topic)}" in list(report.lines())
        assert [kept(named, topic, partition) for partition in range(2)] == diverged
        await copied(engine)
        write_here(named, topic, 3)
        lost = read_rows(named.orange, topic, 0)[-3:]
        await failed_over(named)
        report = await failed_back(named, KEEP)
        assert [each.kept for each in report.partitions] == [3, None, None]
        assert kept(named, topic) == [*diverged[0], *lost]
        await copied(engine)
    names = AdminClient(named.grape.client_configuration()).list_topics(timeout=PATIENCE).topics
    assert not [name for name in names if "diverged" in name]
    made = AdminClient(named.orange.client_configuration()).list_topics(timeout=PATIENCE).topics
    assert named.naming.diverged(other) not in made


async def test_case_247_what_retention_takes_while_it_is_kept_does_not_keep_the_rest_for_ever(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same command again read on where the killed one had ended, and the log began behind that.
    topic, chunk, calls = pair.topic("retained"), _DivergedCopier._chunk, 0

    async def killed(self: _DivergedCopier, metadata: Metadata, at: int, limit: int) -> Chunk:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Killed
        return await chunk(self, metadata, at, limit)

    async with pair.engine() as engine:
        write_here(pair, topic, 5)
        await engine.copy_all()
        producer = pair.producer()
        for number in range(4):
            producer.produce(topic, b"%d" % number * 700_000, partition=0)
            assert producer.flush(PATIENCE) == 0
        here = Logs(pair, topic).at_source()
        await failed_over(pair)
        with monkeypatch.context() as patch:
            patch.setattr(_DivergedCopier, "_chunk", killed)
            with pytest.raises(Killed):
                await failed_back(pair, KEEP)
        before = kept(pair, topic)
        assert 0 < len(before) < 3
        delete_records(pair.orange, topic, 8)
        await failed_back(pair, KEEP)
        assert kept(pair, topic) == [*before, here[8]]


async def test_case_171_what_was_to_be_kept_can_still_be_kept_while_it_is_copied_back(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A batch that was made of what was never copied and of what was copied back held both.
    topic = pair.topic("late")
    async with pair.engine() as engine:
        write_here(pair, topic, 5)
        await engine.copy_all()
        write_here(pair, topic, 3)
        here = Logs(pair, topic).at_source()
        await failed_over(pair)
        write_there(pair, topic, 4)
        with monkeypatch.context() as patch:
            patch.setattr("appliance.commands.failback.failback.returns", killed)
            with pytest.raises(Killed):
                await failed_back(pair)
        assert len(Logs(pair, topic).at_source()) == 12
        await failed_back(pair, KEEP)
        assert kept(pair, topic) == here[5:]


async def test_a_topic_that_cannot_be_kept_is_refused_before_anything_changes(pair: Pair) -> None:
    topic = pair.topic("l" * 225)
    async with pair.engine() as engine:
        write_here(pair, topic, 5)
        await engine.copy_all()
        await failed_over(pair)
        with pytest.raises(LinkRefused, match="is longer than a topic's name may be"):
            await failed_back(pair, KEEP)
    delete_topic(pair.orange, topic)


async def test_case_687_a_topic_of_kept_records_that_changes_their_times_gets_none(pair: Pair) -> None:
    topic = pair.topic("kept-anew")
    diverged = pair.naming.diverged(topic)
    make_topic(pair.orange, NewTopic(diverged, 1, 1, config={"message.timestamp.type": "LogAppendTime"}))
    async with pair.engine() as engine:
        write_here(pair, topic, 5)
        await engine.copy_all()
        write_here(pair, topic, 3)
        lost = read_rows(pair.orange, topic, 0)[5:]
        await failed_over(pair)
        with pytest.raises(BrokerRefused, match=f"{diverged} has message.timestamp.type=LogAppendTime, .* set Create"):
            await failed_back(pair, KEEP)
        assert kept(pair, topic) == []
        configure(pair.orange, diverged, **{"message.timestamp.type": "CreateTime"})
        await failed_back(pair, KEEP)
        assert kept(pair, topic) == lost
