"""Bugs of lanes and of the source's reader, each by itself."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance.errors import BrokerBusy
from appliance.kafka.client.interface import Connection
from appliance.kafka.client.produce import Copy, produce
from appliance.kafka.client.topics import require_led
from appliance.kafka.client.transactions import Producer
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.settings.values import OnGap
from tests.simulation.log import Log
from tests.simulation.scenario import Link, copied

SLOW = 25_000
"""Bytes a second that a slow destination takes."""


def test_case_67_metadata_that_lag_behind_a_topic_made_anew_stop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Metadata that named the older topic stopped the partition for good, though the newer one was known.
    link = Link()
    link.source.make("aaa", 1)
    older = link.source.metadata(["aaa"])
    link.source.delete("aaa")
    log = link.source.make("aaa", 1).logs[0]
    link.process.start(link.replicas())
    link.write(log)
    link.go_on(1)
    assert copied(link, "aaa.copy") == 1
    with monkeypatch.context() as lagging:

        async def metadata(_: Sequence[str] | None) -> Metadata:
            return older

        lagging.setattr(link.process._source, "metadata", metadata)
        link.go_on(15)
        assert "aaa-0 at its leader" in link.faults()
    link.write(log)
    link.go_on(5)
    assert copied(link, "aaa.copy") == 2
    assert link.faults() == {}
    # One that is made anew indeed is not read on, and stops as soon as it is found (invariant G).
    link.source.delete("aaa")
    log = link.source.make("aaa", 1).logs[0]
    link.write(log, 5)
    link.go_on(20)
    assert copied(link, "aaa.copy") == 2
    link.process.assign(link.replicas())
    link.go_on(5)
    assert copied(link, "aaa.copy") == 2
    assert "source topic aaa was deleted and made anew since it was copied" in link.faults()["aaa-0"]


def test_case_69_each_gap_is_told_with_its_offsets() -> None:
    # A gap whose text was that of an earlier one was not told.
    link = Link(OnGap.RECORD)
    link.source.make("aaa", 1)
    link.process.start(link.replicas())
    for count in (2, 2, 3):
        link.write(link.source.topics["aaa"].logs[0], count)
        link.go_on(5)
        link.source.delete("aaa")
        link.source.make("aaa", 1)
        link.process.assign(link.replicas())
        link.go_on(5)
    told = [what[2] for _, _, *what in link.fates.trace if what[:2] == ["notice", "aaa-0 gap"]]
    lost = [f"offset {first} and what followed it will never be copied" for first in (2, 2, 3)]
    assert [text in each for text, each in zip(lost, told, strict=True)] == [True] * 3
    assert copied(link, "aaa.copy") == 7


def test_case_70_a_broker_that_does_not_answer_keeps_no_partition_waiting_but_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The whole lane waited for the leader of the one copy, at its start and whenever it was tried again.
    link = Link()
    healthy, other = (link.source.make(name, 1).logs[0] for name in ("aaa", "bbb"))
    replicas = link.replicas()
    for name, leader in (Partition(link.naming.positions_topic, 1), ("aaa.copy", 1), ("bbb.copy", 2)):
        link.destination.lead(link.destination.topics[name].logs[0], leader)
    answers = asyncio.Event()
    reach, cluster = link.process._destination.broker, link.process._destination

    async def broker(node: int, purpose: str = "control") -> Any:
        if node == 2 and purpose != "transactions":
            await answers.wait()
        return await reach(node, purpose)

    monkeypatch.setattr(cluster, "broker", broker)
    monkeypatch.setattr(cluster, "any_broker", lambda: reach(1))
    for log in (healthy, other):
        link.write(log)
    link.process.start(replicas)
    link.go_on(20)
    assert (copied(link, "aaa.copy"), copied(link, "bbb.copy")) == (1, 0)
    link.write(healthy)
    link.go_on(20)
    assert copied(link, "aaa.copy") == 2
    answers.set()
    link.go_on(40)
    assert copied(link, "bbb.copy") == 1
    assert link.faults() == {}


def test_case_116_a_lane_whose_transactions_outlast_their_timeout_takes_smaller_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It took as much each time, and more once more had come: it copied nothing, for ever, and said nothing.
    link = Link()
    log = link.source.make("aaa", 1).logs[0]

    async def slowly(leader: Connection, producer: Producer, copies: Collection[Copy]) -> asyncio.Future[Any]:
        await asyncio.sleep(sum(len(memoryview(copy.data)) for copy in copies) / SLOW)
        return await produce(leader, producer, copies)

    monkeypatch.setattr("appliance.link.client.writer.produce", slowly)
    for _ in range(100):
        link.write(log, 200)
    link.process.start(link.replicas())
    link.go_on(60)
    told = [what[2] for _, _, *what in link.fates.trace if what[:2] == ["notice", "lane 0 transactions"]]
    assert ["longer than TRANSACTION_TIMEOUT_SECONDS=4" in text for text in told] == [True, True, False]
    assert told[-1] == "well again"
    committed = [entry for entry in link.destination.topics["aaa.copy"].logs[0].entries if entry.outcome]
    assert sum(entry.last - entry.base + 1 for entry in committed if not entry.marker) == 20_000
    assert link.faults() == {}


def test_case_359_partitions_that_their_leader_has_not_made_yet_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # Metadata named the leader. A transaction was aborted there at once, and its transactional id was busy for 30 s.
    link = Link(lanes=3)
    leads = link.destination.leads

    def answer(log: Log | None, node: int, epoch: int = -1) -> ErrorCode:
        return ErrorCode.unknown_topic_or_partition if log is link.positions.logs[2] else leads(log, node, epoch)

    monkeypatch.setattr(link.destination, "leads", answer)
    wanted = {link.naming.positions_topic: 3}
    with pytest.raises(BrokerBusy):
        link.run(require_led(link.at_destination, wanted))
    monkeypatch.undo()
    link.run(require_led(link.at_destination, wanted))
    with pytest.raises(BrokerBusy):
        link.run(require_led(link.at_destination, {link.naming.positions_topic: 4}))
