"""The leader epoch in requests to the source: only the newest leader is believed (KIP-320)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from appliance.engine.read.buffer import Limits, ReadyQueue
from appliance.engine.read.source_reader import SourceReader
from appliance.errors import ApplianceError, GapFound, PartitionStopped
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.connection import BrokerConnection
from appliance.kafka.client.fetch import EpochEnd
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.model.replicas import Replica
from appliance.logs.reader import LogReader
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.values import ClusterSettings, SaslMechanism, SecurityProtocol, Side
from tests.support.leading_broker import LeadingBroker
from tests.support.patience import PATIENCE

POSITION = 80
EPOCH = 5
"""The position of the reader, and the epoch of the last batch before it."""


async def as_is(host: str) -> tuple[str, ...]:
    return (host,)


def settings(target: Target) -> ClusterSettings:
    return ClusterSettings(
        Side.SOURCE, "source", (target,), "", Secret(""), SecurityProtocol.PLAINTEXT, SaslMechanism.PLAIN, None
    )


@dataclass(slots=True)
class Reading:
    """A partition that is read from the position; ``messages`` are the reports on partitions, in their order."""

    reader: SourceReader
    replica: Replica
    messages: list[tuple[str, str]]
    ready: ReadyQueue = field(default_factory=ReadyQueue)
    position: int = POSITION

    async def until(self, offset: int) -> None:
        """Take batches up to an offset, and require that they are in order and without a hole."""
        async with asyncio.timeout(PATIENCE):
            while self.position < offset:
                await self.ready.wait()
                self.ready.clear()
                assert self.reader.take_stops(self.ready) == []
                for chunk in self.reader.take(self.ready, 2**30):
                    assert chunk.batches[0].first_offset == self.position
                    self.position = chunk.next_offset

    async def until_stopped(self) -> PartitionStopped:
        """The reason why reading stops; no batch was read before."""
        async with asyncio.timeout(PATIENCE):
            while not (stopped := self.reader.take_stops(self.ready)):
                await self.ready.wait()
                self.ready.clear()
                assert self.reader.take(self.ready, 2**30) == []
        ((_, reason),) = stopped
        return reason

    async def until_reported(self, subject: str, what: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while not [fault for about, fault in self.messages if about == subject and what in fault]:
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def reading(broker: LeadingBroker, cluster: type[KafkaCluster] = KafkaCluster) -> AsyncIterator[Reading]:
    async with broker.running(), cluster(settings(broker.target), as_is, "test") as source:
        messages: list[tuple[str, str]] = []

        def notice(subject: str, error: ApplianceError | None) -> None:
            messages.append((subject, str(error or "over")))

        reader = SourceReader(source, notice)
        replica = Replica(broker.topic, 0, "copy", broker.topic_id, broker.topic_id)
        one = Reading(reader, replica, messages)
        reader.read(replica, POSITION, EPOCH, one.ready, Limits())
        try:
            yield one
        finally:
            await reader.close()


async def test_a_lagging_replica_that_old_metadata_name_is_not_believed_that_the_log_was_truncated() -> None:
    broker = LeadingBroker(logs={4: range(40), 6: range(200)}, metadata_epochs=[4, 4, 4, 6])
    async with reading(broker) as one:
        await one.until(200)


async def test_case_34_verify_believes_no_leader_that_was_deposed() -> None:
    # Before, it sent no epoch, so a former leader answered with its own log, and a longer copy was called too long.
    broker = LeadingBroker(logs={4: range(40), 6: range(200)}, metadata_epochs=[4, 4, 6], begun=6)
    async with broker.running(), KafkaCluster(settings(broker.target), as_is, "test") as source:
        (found,) = await LogReader(source, Partition(broker.topic, 0), "verify", POSITION).read()
    assert found.header.base_offset == POSITION


async def test_metadata_that_lag_behind_what_is_known_are_not_followed() -> None:
    broker = LeadingBroker(logs={4: range(40), 6: range(100), 7: range(200)}, metadata_epochs=[6, 4, 4, 6, 7])
    async with reading(broker) as one:
        await one.until(100)
        broker.begun = 7  # the leader of epoch 6 is fenced; metadata still name it and an earlier one for a while
        await one.until(200)
        await one.until_reported("orders-0 at its leader", "and epoch 7 has begun")
        await one.until_reported("orders-0 at its leader", "over")


async def test_records_that_the_newest_leader_does_not_hold_any_more_were_truncated() -> None:
    async with reading(LeadingBroker(logs={6: range(40)}, metadata_epochs=[6])) as one:
        assert "truncated: from offset 40 on it does not hold what was copied up to 80" in str(
            await one.until_stopped()
        )


async def test_records_that_were_deleted_before_they_were_read_are_a_gap() -> None:
    async with reading(LeadingBroker(logs={6: range(120, 200)}, metadata_epochs=[6])) as one:
        gap = await one.until_stopped()
    assert isinstance(gap, GapFound)
    assert (gap.first, gap.next) == (80, 120)


async def test_a_new_leader_that_does_not_know_yet_where_its_log_ends_is_asked_again() -> None:  # KIP-207
    broker = LeadingBroker(logs={6: range(40)}, metadata_epochs=[6], unknown_ends=3)
    async with reading(broker) as one:
        async with asyncio.timeout(PATIENCE):
            while broker.unknown_ends > 1:
                await asyncio.sleep(0.01)
        broker.logs[6] = range(200)
        await one.until(200)


async def test_a_replica_from_which_an_epoch_was_compacted_away_is_read_on() -> None:
    broker = LeadingBroker(logs={6: range(200)}, metadata_epochs=[6], ends={EPOCH: EpochEnd(3, 120)})
    async with reading(broker) as one:
        await one.until(200)
    assert broker.last_epochs[:2] == [EPOCH, 3]


async def test_an_epoch_that_ends_below_what_was_read_of_it_was_truncated() -> None:
    broker = LeadingBroker(logs={6: range(200)}, metadata_epochs=[6], ends={EPOCH: EpochEnd(3, 79)})
    async with reading(broker) as one:
        assert "truncated: from offset 79 on" in str(await one.until_stopped())


async def test_an_older_leader_cannot_tell_that_an_epoch_was_truncated() -> None:
    broker = LeadingBroker(logs={4: range(200), 6: range(200)}, metadata_epochs=[4, 6], ends={EPOCH: EpochEnd(3, 40)})
    async with reading(broker) as one:
        async with asyncio.timeout(PATIENCE):
            while len(broker.metadata_epochs) > 1:
                await asyncio.sleep(0.01)
        broker.ends.clear()
        await one.until(200)


async def test_an_unforeseen_error_in_a_partitions_batches_stops_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(LeadingBroker(logs={6: range(200)}, metadata_epochs=[6])) as one:
        with monkeypatch.context() as patched:
            patched.setattr("appliance.engine.read.buffer.outgoing", lambda *_: 1 // 0)
            assert "orders-0 from offset 80: unexpected ZeroDivisionError" in str(await one.until_stopped())
        one.reader.read(one.replica, POSITION, EPOCH, one.ready, Limits())
        await one.until(200)
    assert not [about for about, _ in one.messages if about == "source broker 0"]


class Defective(KafkaCluster):
    """A client that fails once in each of two unforeseen ways."""

    looks = 0
    fetches = 0

    async def metadata(self, topics: Sequence[str] | None) -> Metadata:
        self.looks += bool(topics)
        if self.looks == 1 and topics:
            raise ZeroDivisionError("in the router")
        return await super().metadata(topics)

    async def broker(self, node: int, purpose: str = "control") -> BrokerConnection:
        self.fetches += purpose == "fetch"
        if self.fetches == 3:
            raise ZeroDivisionError("in a fetcher")
        return await super().broker(node, purpose)


async def test_reading_that_ends_by_an_unforeseen_error_is_reported_and_begun_again() -> None:
    broker = LeadingBroker(logs={6: range(200)}, metadata_epochs=[6])
    async with reading(broker, Defective) as one:
        await one.until(200)
        await one.until_reported("source", "unexpected ZeroDivisionError: in the router")
        await one.until_reported("source broker 0", "ZeroDivisionError: in a fetcher; not read meanwhile: orders-0")
        await one.until_reported("source broker 0", "over")
        await one.until_reported("source", "over")
