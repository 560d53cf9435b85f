"""Transactions of the source of which a failover has copied some partitions and others not."""

import time

import pytest
from confluent_kafka import Producer

from appliance.commands import source_transactions
from appliance.commands.model.report import Report
from appliance.commands.pause import set_paused
from appliance.commands.run.operation import Choice, operation
from appliance.kafka.client.fetch import FetchLimits
from appliance.link.model.copy_states import CopyEvent
from tests.support.engine import Pair, copying
from tests.support.operating import NOWHERE, failed_over, run_command, unheard
from tests.support.patience import PATIENCE
from tests.support.rows import wait_until_decided

pytestmark = pytest.mark.asyncio(loop_scope="session")


def transact(pair: Pair, producer: Producer, topics: list[str], abort: bool = False) -> None:
    """One transaction with two records in each topic, and some milliseconds, by which two of them are told apart."""
    producer.begin_transaction()
    for topic in topics * 2:
        producer.produce(topic, b"value", partition=0)
    producer.flush(PATIENCE)
    producer.abort_transaction(PATIENCE) if abort else producer.commit_transaction(PATIENCE)
    for topic in topics:
        wait_until_decided(pair.orange, topic)
    time.sleep(0.005)


def torn(report: Report) -> list[tuple[list[tuple[str, int, int]], list[tuple[str, int, int]]]]:
    """Of each torn transaction what was copied and what was not: topics with their first and last offsets."""
    assert report.torn is not None
    return [
        (
            [(share.topic.partition("-")[0], share.first, share.last) for share in each.copied],
            [(share.topic.partition("-")[0], share.first, share.last) for share in each.not_copied],
        )
        for each in report.torn.found
    ]


async def test_transactions_of_which_one_partition_was_not_copied_are_named_once_the_source_answers(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, c = topics = [pair.topic(name) for name in "abc"]
    first, second = (pair.producer(**{"transactional.id": f"{a}-{n}"}) for n in range(2))
    for producer in (first, second):
        producer.init_transactions(PATIENCE)
    transact(pair, first, topics)  # copied whole: offsets 0 and 1 of each, and a marker
    async with pair.engine() as engine:
        await engine.copy_all()
        async with operation(pair.settings(), Choice(topic="c-.*", yes=True), unheard) as running:
            await run_command(running, set_paused, CopyEvent.PAUSE)
        transact(pair, first, topics)  # torn: 3 and 4
        transact(pair, first, topics, abort=True)
        transact(pair, second, [a, b])  # copied whole: 9 and 10
        transact(pair, second, [c])  # not copied at all
        transact(pair, second, [b, c])  # torn: b 12 and 13, c 12 and 13
        async with copying(engine):
            await engine.until_copied(a, 6)
            await engine.until_copied(b, 8)
        dead = await failed_over(pair, SOURCE_BROKER_SERVERS=NOWHERE)
    assert dead.torn is None
    assert "transactions copied in part: unknown, since the source does not answer" in list(dead.lines())
    known = await failed_over(pair)
    assert known.torn is not None
    assert known.torn.unread == ()
    assert torn(known) == [
        ([("a", 3, 4), ("b", 3, 4)], [("c", 3, 4)]),
        ([("b", 12, 13)], [("c", 12, 13)]),
    ]
    monkeypatch.setattr(source_transactions, "_OFFSETS", 3)
    monkeypatch.setattr(source_transactions, "_FETCH", FetchLimits(1, 0.0))
    bounded = await failed_over(pair)
    assert bounded.torn is not None
    assert (c, 0) in bounded.torn.unread
