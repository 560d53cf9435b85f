"""Invariant N: what a command or a status says of losses, held against both logs as they are.

What it says may be unknown, but is never less than what the copy lacks, and never 0 where that is something.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v6 import ListOffsetsRequest, ListOffsetsResponse

from appliance.commands.model.loss import PartitionLoss
from appliance.commands.model.report import Report
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyState
from appliance.link.model.position import UNKNOWN
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.model.topic_status import PartitionStatus
from tests.simulation.brokers import Brokers
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.truth import Truth

_END = -1
_NOTHING_TO_LOSE = frozenset({CopyState.FAILING_BACK, CopyState.REMOVED, CopyState.DELETED})


@dataclass(slots=True)
class Looks:
    """The ends of the source's logs that one process has been told, and when; ``since`` it is to have looked."""

    source: Brokers
    since: float
    ends: dict[Partition, int] = field(default_factory=dict)

    def answered(self, brokers: Brokers, exchange: Any, answer: Any) -> None:
        """An answer has come to the process."""
        if brokers is not self.source or not isinstance(exchange, ListOffsetsRequest) or exchange.isolation_level:
            return
        assert isinstance(answer, ListOffsetsResponse)
        asked = {
            (str(topic.name), int(each.partition_index)): each.timestamp
            for topic in exchange.topics
            for each in topic.partitions
        }
        for topic in answer.topics:
            for each in topic.partitions:
                key = str(topic.name), int(each.partition_index)
                if asked[key] == _END and each.error_code is ErrorCode.none:
                    self.ends[key] = int(each.offset)

    def begin_anew(self, now: float) -> None:
        """The lanes are fenced now: what was told before says nothing of what is lost."""
        self.since = now
        self.ends.clear()


class Losses:
    """Judges what is said; ``troubles`` are the times at which a log of a partition last lost something."""

    def __init__(self, invariants: Invariants, troubles: Mapping[Partition, float]) -> None:
        self.judged = 0
        self._link, self._troubles = invariants, troubles

    def first_uncopied(self, partition: Partition, truth: Truth) -> int | None:
        """The first offset of the source's log that has no copy, and is no declared gap; None: nobody can know it."""
        position = self._link.newest.get(partition)
        start = max(truth.begin, truth.log.start)
        if position is None:
            return start
        if position.next_offset == UNKNOWN:
            return None
        copy = self._link.copy_of(partition)
        is_ours = copy is not None and self._link.copy_id(partition[0]) == position.destination_id
        if truth is not self._link.truths.get((partition, position.source_id)) or copy is None or not is_ours:
            return truth.log.start
        agreed = start if truth.agreed is None else truth.agreed
        return max(truth.log.start, min(agreed, self._link.translations.places(copy).lost_source))

    def report(self, report: Report, looks: Looks, topic: str, allows_loss: bool) -> None:
        """N: a promotion's report, of a command that no other has got in the way of."""
        said = {(loss.topic, loss.partition): loss for loss in report.losses}
        promoted = {
            record.topic for record in report.states if record.state is CopyState.PROMOTED and not report.dry_run
        }
        for partition, truth in self._link.current.items():
            if self._troubles.get(partition, -1.0) >= looks.since or topic not in ("", partition[0]):
                continue
            if partition in said:
                self._loss(said[partition], truth, looks, report.dry_run)
            elif partition in looks.ends and self._state(partition[0]) not in _NOTHING_TO_LOSE:
                raise Violation(f"N: nothing is said of {partition}: {report}")
            if self._link.obedience.subject(partition[0]) in promoted and partition in said and not allows_loss:
                self._promoted(said[partition], truth, looks, report)

    def _loss(self, loss: PartitionLoss, truth: Truth, looks: Looks, is_planned: bool) -> None:
        partition = loss.topic, loss.partition
        if loss.behind is None:
            return
        end, first = looks.ends.get(partition), self.first_uncopied(partition, truth)
        if end is None or first is None:
            if is_planned:
                return  # the lanes go on meanwhile
            raise Violation(f"N: {loss}: nobody has looked, or could know: {end}, {self._link.newest.get(partition)}")
        self.judged += 1
        lacks, is_exact = max(0, end - first), first == loss.position and not is_planned
        if loss.behind < lacks or (is_exact and loss.behind > truth.log.end - first):
            raise Violation(f"N: {loss}; but the copy lacks {lacks}: from {first} up to {end}")

    def _promoted(self, loss: PartitionLoss, truth: Truth, looks: Looks, report: Report) -> None:
        """``promote`` without --allow-loss, which ``failover`` has as well, ends well: nothing is lost."""
        first, end = (
            self.first_uncopied((loss.topic, loss.partition), truth),
            looks.ends.get((loss.topic, loss.partition)),
        )
        if loss.behind != 0 or first is None or end is None or end > first:
            raise Violation(f"N: promoted without losses, and the copy lacks {first} up to {end}: {loss}, {report}")

    def _state(self, topic: str) -> CopyState:
        return self._link.obedience.state(topic)

    def snapshot(self, snapshot: Snapshot, since: float) -> None:
        """N: a status that was collected since then."""
        lacking = []
        growing = {topic.name for topic in snapshot.topics if topic.state is CopyState.ACTIVE}
        for status in snapshot.partitions:
            partition = status.topic, status.partition
            truth = self._link.current.get(partition)
            if truth is None or self._troubles.get(partition, -1.0) >= since or status.end_offset is None:
                continue
            if self._was_moved_back(partition, status):
                continue
            first = self.first_uncopied(partition, truth)
            lacks = None if first is None else max(0, status.end_offset - first)
            self.judged += 1
            if lacks != 0:
                lacking += [f"{partition} lacks {lacks}: {status}"] if status.topic in growing else []
                self._status(status, lacks)
        if snapshot.state is LinkState.COPIED and lacking:
            raise Violation(f"N: status says {snapshot.state}, and {lacking}")

    def _was_moved_back(self, partition: Partition, status: PartitionStatus) -> bool:
        """True if the operator has moved the position since the status was collected."""
        position, is_named = self._link.newest.get(partition), {(partition[0], None), partition} & self._link.named
        return bool(is_named and position and status.next_offset and position.next_offset < status.next_offset)

    def at_rest(self, snapshot: Snapshot) -> None:
        """N: nothing happens any more. Each partition that grows has stopped, or is copied, or is unknown.

        Of a copy that lost the marker of its newest transaction alone, nobody can say what it holds.
        """
        said = {(status.topic, status.partition): status for status in snapshot.partitions}
        growing = {topic.name for topic in snapshot.topics if topic.state is CopyState.ACTIVE and not topic.stopped}
        for partition in self._link.current:
            if self._state(partition[0]) is not CopyState.ACTIVE or (said and partition[0] not in growing):
                continue
            status, position = said.get(partition), self._link.newest.get(partition)
            is_stopped = position is None or position.next_offset == UNKNOWN or bool(position.stopped)
            if status is not None and status.unknown:
                continue
            if status is None or (is_stopped and not status.stopped) or (not is_stopped and status.lag_records != 0):
                raise Violation(f"N: at rest, status says {status}, and the position is {position}")
            if is_stopped and snapshot.state is not LinkState.STOPPED:
                raise Violation(f"N: at rest, status says {snapshot.state}, and {partition} has stopped")

    def _status(self, status: PartitionStatus, lacks: int | None) -> None:
        lag = status.lag_records
        if lag is not None and (lacks is None or lag < lacks):
            raise Violation(f"N: {status.name} says {lag} behind, and lacks {lacks}: {status}")
