"""The needs of a person at each scrape, by the simulation's own two logs and by what was done to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.records import unpack
from appliance.link.model.checkpoint import Gap, Owner
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.copy_states import CopyState, StateRecord, effective
from appliance.link.model.naming import Naming
from appliance.link.model.position import Position
from tests.simulation.brokers import NODES, Brokers, Topic
from tests.simulation.log import Entry, Log, batch_of

LINK = ""
"""In place of a topic, where an alert names none."""

Need = tuple[str, str]
"""The alert that is to fire, without its prefix, and the topic that it names."""

_HOUR, _STUCK, _LAG, _HELD = 3600.0, 120.0, 60.0, 900.0
_RESTARTS, _RUNS = 900.0, 4
_DOUBT = 45.0
"""Seconds between what the logs show and the newest look at them: three scrapes."""


@dataclass(slots=True)
class Memory:
    """All that the destination's positions topic has committed so far; dead letters and gaps with their times."""

    positions: dict[Partition, Position] = field(default_factory=dict)
    gaps: dict[Partition, dict[int, float]] = field(default_factory=dict)
    letters: dict[Partition, float] = field(default_factory=dict)
    states: dict[str, StateRecord] = field(default_factory=dict)
    committed: dict[Partition, float] = field(default_factory=dict)
    runs: dict[str, float] = field(default_factory=dict)
    """When each run of the replicator took a lane first."""
    _known: set[tuple[Log, int]] = field(default_factory=set)

    def learn(self, logs: Sequence[Log], now: float) -> None:
        """Take in what has been committed since the last time."""
        for log in logs:
            for entry in log.entries:
                if entry.outcome and not entry.marker and (log, entry.base) not in self._known:
                    self._known.add((log, entry.base))
                    self._take(entry, log.number, now)

    def _take(self, entry: Entry, lane: int, now: float) -> None:
        for record in unpack(batch_of(entry), 0):
            match decode(record):
                case (tuple() as partition, Position() as position):
                    before = self.positions.get(partition)
                    if position.dead_letters > (before.dead_letters if before else 0):
                        self.letters[partition] = now
                    self.positions[partition], self.committed[partition] = position, now
                case Gap() as gap:
                    self.gaps.setdefault(gap.partition, {}).setdefault(gap.first, now)
                case (int(), Owner() as owner):
                    self.runs.setdefault(owner.run, now)
                case StateRecord() as state if lane == 0:
                    self.states[state.topic] = state


@dataclass(slots=True)
class Needs:
    """Looks at each scrape: ``certain`` are the needs then, ``arguable`` those that a view may or may not tell.

    What no log shows is told by whoever does it: ``unfit`` topics, whose copies cannot be made; ``others``; and what is
    ``allowed`` beside these.
    """

    source: Brokers
    destination: Brokers
    naming: Naming
    certain: list[frozenset[Need]] = field(default_factory=list)
    arguable: list[frozenset[Need]] = field(default_factory=list)
    unfit: set[str] = field(default_factory=set)
    others: set[Need] = field(default_factory=set)
    allowed: set[Need] = field(default_factory=set)
    memory: Memory = field(default_factory=Memory)
    _ends: dict[Partition, list[tuple[float, int]]] = field(default_factory=dict)
    _since: dict[tuple[str, Partition], float] = field(default_factory=dict)

    def look(self, now: float, scraped: bool, serves: bool) -> None:
        """``scraped``: there is a target; ``serves``: a replicator runs, and looks at both clusters."""
        name = self.naming.positions_topic
        self.memory.learn(self.destination.topics[name].logs if name in self.destination.topics else (), now)
        found = [*self._of_topics(now), *self._of_the_link(now)]
        certain = {need for need, is_certain in found if is_certain}
        away = [
            name
            for name, cluster in (("SourceUnreachable", self.source), ("DestinationUnreachable", self.destination))
            if len(cluster.away) == len(NODES)
        ]
        if not scraped:
            certain = {("NotScraped", LINK)}
        elif not serves:
            certain = {("Silent", LINK)}
        elif away:
            certain = {(name, LINK) for name in away}
        self.certain.append(frozenset(certain))
        self.arguable.append(frozenset({*certain, *self.allowed, *(need for need, _ in found)}))

    def _of_the_link(self, now: float) -> Iterator[tuple[Need, bool]]:
        yield from ((need, True) for need in self.others)
        if not (self.source.topics and self.memory.runs):
            yield ("NotCopying", LINK), True
        ages = [now - began for began in self.memory.runs.values()]
        if sum(age < _RESTARTS + _DOUBT for age in ages) >= _RUNS:
            yield ("Restarts", LINK), sum(age < _RESTARTS - _DOUBT for age in ages) > _RUNS

    def _of_topics(self, now: float) -> Iterator[tuple[Need, bool]]:
        for topic in self.source.topics.values():
            state = effective(self.memory.states, topic.name)
            if state in (CopyState.FAILING_OVER, CopyState.FAILING_BACK, CopyState.RESETTING):
                yield ("CommandUnfinished", topic.name), True
            if topic.name in self.unfit:
                yield ("TopicStopped", topic.name), state is CopyState.ACTIVE
            for log in topic.logs:
                yield from self._of_partition(topic, log, state, now)

    def _of_partition(self, topic: Topic, log: Log, state: CopyState, now: float) -> Iterator[tuple[Need, bool]]:
        name, key = topic.name, (topic.name, log.number)
        position, is_active = self.memory.positions.get(key), state is CopyState.ACTIVE
        disagrees, leads = self._disagrees(topic, log, position), log.leader in NODES
        stopped = position is not None and bool(position.stopped)
        if stopped or disagrees:
            yield ("PartitionStopped", name), stopped
        if disagrees:
            yield ("PartitionUnknown", name), False
        if log.open:
            held = now - self._from("held", key, now)
            yield from self._aged(("Held", name), held, _HELD, leads)
        else:
            self._since.pop(("held", key), None)
        if not leads:
            yield ("PartitionUnknown", name), True
        for grown in self.memory.gaps.get(key, {}).values():
            yield from self._within_the_hour(("Gap", name), now - grown)
        if key in self.memory.letters:
            yield from self._within_the_hour(("DeadLetters", name), now - self.memory.letters[key])
        if (behind := self._behind(log, position, now)) is None or not is_active:
            return
        still = min(behind, now - self.memory.committed.get(key, 0.0))
        certain = leads and not stopped and not disagrees and name not in self.unfit
        yield from self._aged(("Stuck", name), still, _STUCK, certain)
        yield from self._aged(("NotCopying", LINK), still, _STUCK, False)
        yield from self._aged(("Lag", name), behind, _LAG, certain)

    @staticmethod
    def _within_the_hour(need: Need, age: float) -> Iterator[tuple[Need, bool]]:
        if age < _HOUR:
            yield need, age < _HOUR - 2 * _DOUBT

    @staticmethod
    def _aged(need: Need, age: float, threshold: float, certain: bool) -> Iterator[tuple[Need, bool]]:
        """A need of what has gone on for so long."""
        if age > threshold - _DOUBT:
            yield need, certain and age > threshold + _DOUBT

    def _from(self, what: str, key: Partition, now: float) -> float:
        return self._since.setdefault((what, key), now)

    def _behind(self, log: Log, position: Position | None, now: float) -> float | None:
        """The age of the oldest committed record that is not copied; None if all are."""
        key, ends = (log.topic, log.number), self._ends.setdefault((log.topic, log.number), [])
        if not ends or ends[-1][1] < log.stable_end:
            ends.append((now, log.stable_end))
        copied = position.next_offset if position else log.start
        due = [
            entry
            for entry in log.entries[log.index(copied) :]
            if entry.outcome and not entry.marker and copied <= entry.last < log.stable_end
        ]
        if not due:
            return None
        return now - next((at for at, end in self._ends[key] if end > due[0].base), now)

    def _disagrees(self, topic: Topic, log: Log, position: Position | None) -> bool:
        """The copy is not the one that was written, or lacks what it had, or the source lacks what was copied."""
        copy = self.destination.topics.get(self.naming.destination(topic.name))
        if position is None or copy is None or log.number >= len(copy.logs):
            return position is not None
        end = position.copy_end.offset if position.copy_end else 0
        short = copy.logs[log.number].end < end or log.end < position.next_offset
        return short or copy.id != position.destination_id or topic.id != position.source_id
