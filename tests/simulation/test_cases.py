"""Bugs that random histories have found, each as a case."""

import random
import struct
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from appliance.commands.resumption import Choice, resume
from appliance.driver.discovery import TopicDiscovery
from appliance.kafka.records.batch import stamp_crc
from appliance.kafka.records.records import Record, body, pack
from appliance.link import handle
from appliance.link.client.registry import Registry
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import Replica
from appliance.settings.values import OnGap, Side, Start
from tests.simulation.administration import Administration
from tests.simulation.brokers import Brokers
from tests.simulation.client import Fates, SimulatedCluster
from tests.simulation.log import Log
from tests.simulation.loop import SimulatedLoop
from tests.simulation.operator_commands import simulated
from tests.simulation.process import TRANSACTION_TIMEOUT, Replicator, settings

Result = TypeVar("Result")

PRODUCER, PRODUCER_AT = struct.Struct(">qhi"), 43
"""A batch's producer id, epoch and first sequence number, which are -1 without a producer."""


class Clusters:
    """Both clusters of a link to which nothing happens but what a test does."""

    def __init__(self) -> None:
        chance = random.Random(0)
        self.loop = SimulatedLoop(chance)
        self.source, self.destination = (Brokers(name, self._later, lambda _: None) for name in ("orange", "grape"))
        Administration(self.source)
        Administration(self.destination)
        self.fates = fates = Fates(self.loop, chance)
        self.at_source = SimulatedCluster(self.source, Side.SOURCE, self.loop.world, fates)
        self.at_destination = SimulatedCluster(self.destination, Side.DESTINATION, self.loop.world, fates)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = self.loop.start(self.loop.world, work)
        self.loop.run_while(lambda: not task.done())
        return task.result()

    def _later(self, reason: str, act: Callable[[], None]) -> None:
        delay = 0.001 if reason == "marker" else TRANSACTION_TIMEOUT
        self.loop.at(self.loop.time() + delay, self.loop.world, act)


def test_case_60_a_copy_that_was_claimed_and_not_written_to_yet_is_grown() -> None:
    clusters = Clusters()
    known = settings("orange", OnGap.STOP, Start.EARLIEST, 1)
    naming = Naming.of(known)
    clusters.source.make("orders", 3)
    copy = clusters.destination.make(naming.destination("orders"), 2)
    clusters.destination.make(naming.positions_topic, 1)
    registry = Registry(clusters.at_destination, naming.replicator)
    assert clusters.run(registry.claim({copy.name: copy.id})) == {}
    link = handle.Link(clusters.at_source, clusters.at_destination, naming)
    found = clusters.run(TopicDiscovery(link, known.topics).look())
    assert found.unfit == {}
    assert [replica.partition for replica in found.replicas] == [0, 1, 2]


class Link(Clusters):
    """A link between the clusters whose one process copies what it is told to."""

    def __init__(self, on_gap: OnGap = OnGap.STOP, lanes: int = 1) -> None:
        super().__init__()
        self.settings = settings("orange", on_gap, Start.EARLIEST, lanes)
        self.naming = Naming.of(self.settings)
        self.positions = self.destination.make(self.naming.positions_topic, lanes, {"cleanup.policy": "compact"})
        self.process = Replicator(1, self.source, self.destination, self.fates, self.settings)
        self._written = 0
        self._tick()

    def replicas(self) -> tuple[Replica, ...]:
        """Make copies for all partitions of the source, and return them."""
        found: list[Replica] = []
        for topic in self.source.topics.values():
            name = self.naming.destination(topic.name)
            copy = self.destination.topics.get(name) or self.destination.make(name, len(topic.logs))
            found += [Replica(topic.name, log.number, name, topic.id, copy.id) for log in topic.logs]
        return tuple(found)

    def write(self, log: Log, count: int = 1) -> None:
        """A batch of a producer that has no transaction."""
        values = [body(None, b"%d" % (self._written + number)) for number in range(count)]
        records = [Record(0, 1_700_000_000_000 + self._written + n, value) for n, value in enumerate(values)]
        data = bytearray(pack(records, 0))
        PRODUCER.pack_into(data, PRODUCER_AT, -1, -1, -1)
        stamp_crc(data)
        log.append(data, [(record.timestamp, record.body) for record in records])
        self.source.changed(log)
        self._written += count

    def go_on(self, seconds: float) -> None:
        until = self.loop.time() + seconds
        self.loop.run_while(lambda: self.loop.time() < until)

    def faults(self) -> dict[str, str]:
        return {subject: str(error) for subject, error in self.process.faults.items()}

    def _tick(self) -> None:
        """Let time go on when nothing is due."""
        self.loop.at(self.loop.time() + 0.2, self.loop.world, self._tick)


def copied(link: Link, topic: str, partition: int = 0) -> int:
    """The number of records in a copy."""
    entries = link.destination.topics[topic].logs[partition].entries
    return sum(entry.last - entry.base + 1 for entry in entries if not entry.marker)


def test_case_42_a_gap_whose_end_no_leader_tells_keeps_no_other_partition_waiting() -> None:
    # With ON_GAP=record the whole lane waited for a leader of the one partition, which was not even named.
    link = Link(OnGap.RECORD)
    link.source.make("aaa", 1)
    healthy = link.source.make("bbb", 1).logs[0]
    link.process.start(link.replicas())
    link.write(link.source.topics["aaa"].logs[0])
    link.go_on(2)
    link.source.delete("aaa")
    link.source.lead(link.source.make("aaa", 1).logs[0], -1)
    link.process.assign(link.replicas())
    link.write(healthy)
    link.go_on(10)
    assert copied(link, "bbb.copy") == 1
    assert list(link.faults()) == ["aaa-0"]


def test_case_43_a_fenced_lane_that_cannot_find_out_by_whom_says_so() -> None:
    # It was copied by nobody, and nothing said so.
    link = Link()
    log = link.source.make("aaa", 1).logs[0]
    link.process.start(link.replicas())
    link.write(log)
    link.go_on(1)
    link.destination.coordinator.init(link.naming.transactional_id(0))
    link.destination.lead(link.positions.logs[0], -1)
    link.write(log)
    link.go_on(10)
    assert "lane 0" in link.faults()
    link.destination.lead(link.positions.logs[0], 1)
    link.go_on(10)
    assert link.faults() == {}
    assert copied(link, "aaa.copy") == 2


def test_case_44_a_copy_made_anew_just_when_another_partition_of_it_is_taken_in_gets_nothing_at_its_beginning() -> None:
    # What came next of the warm partition went to the beginning of the new topic, and what came before was not in it.
    link = Link()
    topic = link.source.make("aaa", 2)
    replicas = link.replicas()
    link.process.start(replicas[:1])
    link.write(topic.logs[0], 3)
    link.go_on(0.3)
    assert copied(link, "aaa.copy") == 3
    link.destination.delete("aaa.copy")
    link.destination.make("aaa.copy", 2)
    link.go_on(0.01)
    link.process.assign(replicas)
    link.go_on(0.05)
    link.write(topic.logs[0], 2)
    link.go_on(20)
    assert copied(link, "aaa.copy") == 0
    # Once discovery has found the new topic, the partition that was never copied is copied.
    link.write(topic.logs[1])
    link.process.assign(link.replicas())
    link.go_on(20)
    assert copied(link, "aaa.copy", 1) == 1
    assert list(link.faults()) == ["aaa-0"]


def test_case_72_a_loss_before_the_first_record_after_a_resume_is_noticed() -> None:
    # The end of the copy was forgotten when the operator moved the position, and not known again before a record came.
    link = Link()
    log = link.source.make("aaa", 1).logs[0]
    link.process.start(link.replicas())
    link.write(log, 3)
    link.go_on(1)
    with simulated(link.source, link.destination, link.fates):
        assert link.run(resume(link.settings, Choice("aaa", 0, "latest"), lambda _: None)) == 1
    copy = link.destination.topics["aaa.copy"].logs[0]
    copy.truncate(0)
    link.destination.lead(copy, copy.leader)
    link.write(log)
    link.go_on(20)
    assert "has lost what it had acknowledged, offsets 0 to 3" in link.faults()["aaa-0"]
    assert not any(entry.outcome for entry in copy.entries)
