"""The status of one partition, composed from the facts of both clusters and its status before."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from appliance.kafka.protocol.metadata import Partition, is_another
from appliance.link.model.agreement import MADE_ANEW, Agreement, SourceLog, agree
from appliance.link.model.checkpoint import start_place
from appliance.link.model.copy_states import States, effective
from appliance.link.model.layout import Layout
from appliance.link.model.position import UNKNOWN, Position
from appliance.link.model.problems import Fault
from appliance.settings.values import Settings, Start, TopicNaming
from appliance.status.model.facts import DestinationFacts, Log, Observation, SourceFacts
from appliance.status.model.topic_status import BlockingTransaction, PartitionStatus, Reached

_OBSERVED_MS = 10_000
"""Time after the first collection from which on the age of a lag is at least known to be that long."""

_REACHED_MAX = 64


def lasting(reason: str, before: Fault | None, now: int) -> Fault | None:
    """The fault of a reason, if there is one; its beginning stays though the reason may change."""
    return Fault(reason, before.since if before else now) if reason else None


@dataclass(frozen=True, slots=True)
class PartitionComposer:
    """Composes the partitions of one snapshot; ``layout`` is the link's, and ``previous_at`` the time of the snapshot
    before. Times are in milliseconds.
    """

    settings: Settings
    source: Observation[SourceFacts]
    destination: Observation[DestinationFacts]
    states: States
    layout: Layout | None
    previous_at: int | None
    now: int

    def status(self, key: Partition, active: bool, before: PartitionStatus | None) -> PartitionStatus:
        """The status of a partition; ``active`` while its topic exists and its name matches."""
        source, destination = self.source.now, self.destination.now
        position = destination.positions.get(key) if destination else None
        log = source.logs.get(key) if source and active else None
        copied = (position.records if position else 0) if destination else None
        agreement = self._agreement(key, position, log)
        lag = self._lag(key, log) if position is None else agreement.uncopied
        ends, observed_at = self._ends(log, lag, before)
        stopped = lasting(agreement.lost, before.stopped if before else None, self.now)
        if position and position.stopped:
            stopped = Fault(position.stopped, position.stopped_at)
        unknown = self._unknown(key, active) or ("" if stopped else agreement.unrelated or agreement.unknown)
        return PartitionStatus(
            topic=key.topic,
            partition=key.number,
            lane=self.layout.lane_of(*key) if self.layout else None,
            next_offset=position.next_offset if position and position.next_offset != UNKNOWN else None,
            end_offset=log.stable_end if log else None,
            copied=copied,
            bytes=(position.bytes if position else 0) if destination else None,
            rate=self._rate(copied, before),
            lag_records=lag,
            reached=ends,
            observed_at=observed_at,
            committed_at=destination.committed_at.get(key) if destination else None,
            lag_seconds=self._lag_seconds(lag, ends, observed_at),
            latency_ms=self._latency(key, position, before),
            stopped=stopped if active else None,
            unknown=lasting(unknown, before.unknown if before else None, self.now),
            held=self._hold(key, log),
            gaps=destination.gaps.get(key, ()) if destination else None,
            dropped=self._dropped(position),
            written=source.written.get(key, 0) if source and source.written is not None else None,
            filtered=(position.filtered if position else 0) if destination else None,
            dead_letters=(position.dead_letters if position else 0) if destination else None,
            lost_at_source=agreement.lost_at_source,
            trial=position.trial if position and active else None,
        )

    def _agreement(self, key: Partition, position: Position | None, log: Log | None) -> Agreement:
        """The agreement of both logs; none where nothing was copied yet, or the topic is gone at the source."""
        source, destination = self.source.now, self.destination.now
        topic_id = source.topic_id(key.topic) if source else None
        if not (source and topic_id and destination and position) or position.next_offset == UNKNOWN:
            return Agreement()
        follows = effective(self.states, key.topic).follows
        if self._is_gone(key):
            anew = is_another(position.source_id, topic_id) and follows
            return Agreement(
                lost=f"source topic {key.topic} {MADE_ANEW}, with fewer partitions" if anew else "", uncopied=0
            )
        end, epochs_end, epoch = log.stable_end if log else None, None, source.metadata.leader_epoch(*key)
        if log and log.asked_epoch == position.leader_epoch >= 0:
            epochs_end = log.epochs_end
        elif end is not None and end < position.next_offset and epoch != position.leader_epoch:
            end = None  # the position has moved since the ends, and the epochs, were asked for
        agreement = agree(key.topic, position, SourceLog(topic_id, end, epoch, epochs_end), destination.copies[key])
        return agreement if follows else replace(agreement, lost="")

    def _is_gone(self, key: Partition) -> bool:
        """True of a partition that its topic has no longer, as it was recreated with fewer."""
        topic = self.source.now.metadata.topics.get(key.topic) if self.source.now else None
        return topic is not None and 0 < len(topic.leaders) <= key.number

    def _unknown(self, key: Partition, active: bool) -> str:
        if problem := self.destination.problem or self.source.problem:
            return problem
        source = self.source.now
        return source.unanswered.get(key, "") if source and active else ""

    def _hold(self, key: Partition, log: Log | None) -> BlockingTransaction | None:
        transaction = self.source.now.holding.get(key) if self.source.now else None
        return BlockingTransaction(transaction, log.end - log.stable_end) if transaction and log else None

    def _dropped(self, position: Position | None) -> int | None:
        identical = self.settings.topics.naming is TopicNaming.IDENTICAL
        return (position.dropped if position else 0) if identical and self.destination.now else None

    def _lag(self, key: Partition, log: Log | None) -> int | None:
        """The lag of a partition without a position."""
        destination = self.destination.now
        if log is None or destination is None:
            return 0 if destination and self._is_gone(key) else None
        begin = self._start_offset(key, destination, log)
        return log.stable_end - begin if begin is not None and begin >= 0 else None

    def _start_offset(self, key: Partition, destination: DestinationFacts, log: Log) -> int | None:
        """The first offset of a partition without a position; None until the link is made."""
        topic, source = destination.topic, self.source.now
        if topic is None or topic.link is None:
            return log.start if self.settings.topics.start is Start.EARLIEST else None
        source_id = source.topic_id(key.topic) if source else None
        begin = start_place(*key, source_id, topic.checkpoints[0].starts)
        return log.start if begin is None else begin.offset

    def _ends(
        self, log: Log | None, lag: int | None, before: PartitionStatus | None
    ) -> tuple[tuple[Reached, ...], int | None]:
        """The ends above the position, and the time of the first collection that found the lag."""
        ends, observed_at = (before.reached, before.observed_at) if before else ((), None)
        if log is None or lag is None:
            return ends, observed_at
        return reached(ends, log.stable_end, log.stable_end - lag, self.now), min(observed_at or self.now, self.now)

    def _lag_seconds(self, lag: int | None, ends: Sequence[Reached], observed_at: int | None) -> float | None:
        """The time since the first of the ends; unknown while it may have been there long before the first look."""
        if lag == 0:
            return 0.0
        if lag is None or not ends:
            return None
        since = ends[0].at
        return None if since == observed_at and self.now - since < _OBSERVED_MS else max(0, self.now - since) / 1000

    def _latency(self, key: Partition, position: Position | None, before: PartitionStatus | None) -> int | None:
        committed = self.destination.now.committed_at.get(key) if self.destination.now else None
        if committed is None or position is None or position.timestamp < 0 or before is None or before.copied is None:
            return None
        latency = committed - position.timestamp
        return latency if latency >= 0 and position.records > before.copied else None

    def _rate(self, copied: int | None, before: PartitionStatus | None) -> float | None:
        if before is None or self.previous_at is None or before.copied is None or copied is None:
            return None
        passed = (self.now - self.previous_at) / 1000
        return (copied - before.copied) / passed if passed > 0 and copied >= before.copied else None


def reached(before: Sequence[Reached], end: int, position: int, now: int) -> tuple[Reached, ...]:
    """The ends of a source partition above a position, after its log was seen to end at ``end`` now.

    Of many, the one is dropped without which the ages of those around it differ least: each age is right to a quarter.
    """
    above = [Reached(each.end, min(each.at, now)) for each in before if position < each.end <= end]
    if end > position and (not above or above[-1].end < end):
        above.append(Reached(end, now))
    if len(above) > _REACHED_MAX:
        ages = [now - each.at + 1 for each in above]
        del above[min(range(1, len(above) - 1), key=lambda at: ages[at - 1] / ages[at + 1])]
    return tuple(above)
