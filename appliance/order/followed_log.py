"""A partition of a topic of ours in some cluster, followed by Fetches that wait; what fails is tried again."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from appliance.clock import loop_seconds
from appliance.engine.problem_log import log_defect
from appliance.errors import ApplianceError, BrokerBusy
from appliance.kafka.client.compacted_log import CompactedLog
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import Record

_WAIT, _METADATA_AGE, _PAUSE = 0.5, 5.0, 0.5
"""Seconds that a Fetch waits for records, that metadata serve, and between two tries of a cluster that fails."""


@dataclass(eq=False)
class FollowedLog:
    """Gives all committed records to ``take``, in order, and each time whole transactions; ``purpose`` is its own.

    ``forget`` is called when the log was truncated or recreated, before it is read from its start again. With
    ``from_end`` what is there at first is left out. ``told`` is called when ``failure`` changes.
    """

    cluster: Cluster
    partition: Partition
    purpose: str
    take: Callable[[Sequence[Record]], None]
    forget: Callable[[], None]
    told: Callable[[], None]
    from_end: bool = False
    failure: ApplianceError | None = None
    read_at: float = float("-inf")
    """The time of the last answer, in seconds of the event loop."""
    is_known: bool = False
    """It was read to its end once, or is not there."""
    _pending: list[Record] = field(init=False, default_factory=list)
    _log: CompactedLog = field(init=False)

    def __post_init__(self) -> None:
        self._log = CompactedLog(self.cluster, self.partition, self._pending.extend, self._restarted)

    async def follow(self) -> None:
        """Read until cancelled."""
        while True:
            failure = None
            try:
                await self._read_on()
            except ApplianceError as error:
                failure = error
            except Exception as error:
                failure = log_defect(error)
            self._tell(failure)
            await asyncio.sleep(_PAUSE * random.uniform(0.5, 1) if failure else 0)

    async def _read_on(self) -> None:
        """Read with metadata that serve for some seconds."""
        topic_name, log = self.partition.topic, self._log
        metadata = await self.cluster.metadata([topic_name])
        topic = metadata.topics.get(topic_name)
        if topic is None or topic.id != log.topic_id:
            self._forget()
            log.topic_id, log.progress.read_to = (topic.id if topic else None), -1
            self.is_known = topic is None
            self.told()
        if topic is None or metadata.leader(*self.partition) < 0:
            raise BrokerBusy(f"{self.partition} is not there yet", "LEADER_NOT_AVAILABLE")
        if self.from_end and log.progress.read_to < 0:
            log.progress.read_to = (await list_offsets(self.cluster, metadata, [self.partition], Bound.END))[
                self.partition
            ]
        until = loop_seconds() + _METADATA_AGE
        while loop_seconds() < until:
            if await log.follow(metadata, self.purpose, _WAIT) and self._pending:
                self.take([*self._pending])
                self._pending.clear()  # not earlier: what is refused is met again
            self.is_known = self.is_known or not self._pending
            self.read_at = loop_seconds()
            self._tell(None)

    def _tell(self, failure: ApplianceError | None) -> None:
        changed = (failure is None) != (self.failure is None)
        self.failure = failure
        if changed:
            self.told()

    def _restarted(self) -> None:
        self._forget()
        if self.from_end:
            raise BrokerBusy(f"{self.partition} was truncated", "OFFSET_OUT_OF_RANGE")

    def _forget(self) -> None:
        self._pending.clear()
        self.forget()
