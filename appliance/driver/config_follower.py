"""The settings of copies, kept like those of their source topics."""

import logging
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError
from appliance.kafka.client.config_filter import Change, ConfigFilter
from appliance.kafka.client.configs import set_on, try_describe
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.offsets import Bound, try_offsets
from appliance.link.client.checkpoint_log import NewestStates
from appliance.link.handle import Link
from appliance.link.model.checkpoint import start_place
from appliance.link.model.naming import Naming
from appliance.link.model.problems import CONFIGS
from appliance.link.model.replicas import Replica
from appliance.link.model.topic_configs import ConfigChange, Configs, config_change, log_fields, stays
from appliance.settings.values import TopicSettings

log = logging.getLogger("appliance.replicator")

_ROUND_SEARCHES = 5
_TOPICS_A_SEARCH = 50
"""Largest number of topics whose settings are compared at each search for topics; of few topics, a fifth is."""


@dataclass(slots=True)
class ConfigDiff:
    """The settings to change, by copy; unavailable settings with their reasons, and errors, both by source topic.

    ``own`` are the settings of each copy that are the link's, once it has made the change. ``unchanged`` are source
    topics whose copies stay as they are, with the reasons.
    """

    changes: dict[str, Change] = field(default_factory=dict)
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    failures: dict[str, ApplianceError] = field(default_factory=dict)
    own: dict[str, Configs] = field(default_factory=dict)
    unchanged: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class LeftOut:
    """The settings that copies lack, with the causes, by source topic."""

    naming: Naming
    _causes: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, topics: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The names of the settings, as far as they are known."""
        return {name: tuple(sorted(self._causes[name])) for name in topics if name in self._causes}

    def note(self, left_out: Mapping[str, Mapping[str, str]]) -> None:
        """Note those of some topics, and log the new ones."""
        news = {}
        for topic, causes in left_out.items():
            if new := {key: why for key, why in causes.items() if key not in self._causes.get(topic, {})}:
                news[self.naming.destination(topic)] = new
            self._causes[topic] = dict(causes)
        if news:
            log.warning("settings left out", extra={"fields": log_fields(news)})


@dataclass(slots=True)
class Backlog:
    """The source records that copies lack still, of those that their topics held when somebody first asked.

    After a restart, of those that they held then.
    """

    source: Cluster
    states: NewestStates
    _ends: dict[Replica, int] = field(default_factory=dict)

    async def of(self, replicas: Collection[Replica], asked: Collection[str]) -> set[str]:
        """The source topics whose copies lack records; of others ``asked`` for the ends are dropped."""
        self._ends = {
            each: end for each, end in self._ends.items() if each in replicas or each.source_topic not in asked
        }
        if not replicas:
            return set()
        metadata = await self.source.metadata(sorted({replica.source_topic for replica in replicas}))
        partitions = [replica.source for replica in replicas]
        ends, _ = await try_offsets(self.source, metadata, partitions, Bound.END)
        starts, _ = await try_offsets(self.source, metadata, partitions, Bound.START)
        lanes = await self.states.checkpoints()
        positions = {key: position for lane in lanes for key, position in lane.positions.items()}
        behind = set()
        for replica in replicas:
            start = start_place(*replica.source, replica.source_id, lanes[0].starts) if lanes else None
            copied_to, position = start.offset if start else -1, positions.get(replica.source)
            if position and (position.source_id, position.destination_id) == (
                replica.source_id,
                replica.destination_id,
            ):
                copied_to = position.next_offset
            if replica.source in ends:
                self._ends.setdefault(replica, ends[replica.source])
            reached = max(copied_to, starts.get(replica.source, -1))
            if replica not in self._ends or reached < self._ends[replica]:
                behind.add(replica.source_topic)
        return behind


@dataclass(slots=True)
class Turns:
    """The topics whose settings are compared next: each once in ``_ROUND_SEARCHES``, or later if there are many."""

    _due: deque[str] = field(default_factory=deque)
    _share: int = 0

    def next(self, topics: Collection[str], new: Collection[str] = ()) -> list[str]:
        """The next ones, and the ``new`` ones at once; those that have come wait for the next round."""
        if not self._due:
            self._due.extend(topics)
            self._share = min(_TOPICS_A_SEARCH, -(-len(topics) // _ROUND_SEARCHES))
        due = [self._due.popleft() for _ in range(min(self._share, len(self._due)))]
        first = [name for name in topics if name in new][:_TOPICS_A_SEARCH]
        return list(dict.fromkeys(name for name in (*due, *first) if name in topics))


@dataclass(slots=True)
class ConfigFollower:
    """Applies the settings of source topics to their copies, and unsets those of the link's that a source lacks.

    The registry remembers which settings are the link's: they are recorded there before they are set.
    """

    link: Link
    topics: TopicSettings
    problems: ProblemLog = field(default_factory=ProblemLog)
    filter: ConfigFilter = field(init=False)
    left_out: LeftOut = field(init=False)
    _backlog: Backlog = field(init=False)
    _turns: Turns = field(default_factory=Turns)

    def __post_init__(self) -> None:
        self.filter = ConfigFilter(self.link.destination, self.link.naming.positions_topic)
        self.left_out = LeftOut(self.link.naming)
        self._backlog = Backlog(self.link.source, self.link.lanes)

    async def diff(self, topics: Collection[str], replicas: Iterable[Replica]) -> ConfigDiff:
        """Compare the copies of these source topics with them, and change nothing.

        The registry has been read; the replicas are those of all topics.
        """
        copies = {name: self.link.naming.destination(name) for name in topics}
        at_source, undescribed = await try_describe(self.link.source, topics)
        on_copies, unseen = await try_describe(self.link.destination, list(copies.values()))
        diff, sides, changes = ConfigDiff(), {}, dict[str, ConfigChange]()
        for name, copy in copies.items():
            if name in at_source and on_copies.get(copy):
                remembered = self.link.registry.ledger.configs(copy)
                # Nothing is unset that no longer follows, or of a source that does not tell its settings.
                follow = self.topics.configs_to_follow(dict(remembered)) if at_source[name] else {}
                ours = frozenset(each for each in remembered if each[0] in follow or (at_source[name] and stays(each)))
                diff.own[copy] = remembered - ours
                sides[name] = self.topics.configs_to_follow(set_on(at_source[name])), on_copies[copy], ours
                changes[name] = config_change(*sides[name])
            elif error := unseen.get(copy) or undescribed.get(name):
                diff.failures[name] = error
        early = {each for each in replicas if each.source_topic in changes and changes[each.source_topic].early}
        for name in await self._backlog.of(early, topics):
            changes[name] = config_change(*sides[name], changes[name].early)
        for name, change in changes.items():
            diff.left_out[name] = dict(change.left_out)
            diff.own[copies[name]] |= change.own
            if change.settings:
                diff.changes[copies[name]] = change.settings
        return diff

    async def follow(self, topics: Collection[str], replicas: Collection[Replica], new: Collection[str] = ()) -> None:
        """Update the copies of those source topics whose turn it is, and of ``new`` ones, unless CONFIGS_SYNC=no."""
        subjects = {subject for subject in self.problems.open if subject.startswith(CONFIGS)}
        for gone in subjects - {CONFIGS + each.source_topic for each in replicas}:
            self.problems.over(gone)
        if not self.topics.syncs_configs or not (topics := self._turns.next(topics, new)):
            return
        diff = await self.diff(topics, replicas)
        await self.link.registry.note_configs(diff.own)
        if diff.changes:
            copies = {self.link.naming.destination(name) for name in await self.link.lanes.still_active(topics)}
            diff.changes = {copy: change for copy, change in diff.changes.items() if copy in copies}
        changed = await self.filter.change(diff.changes)
        for name in topics:
            copy = self.link.naming.destination(name)
            if copy in changed.made:
                fields = {"topic": copy, "changed": sorted(changed.made[copy])}
                log.info("configuration followed", extra={"fields": fields})
            if error := changed.failures.get(copy) or diff.failures.get(name):
                self.problems.tell(CONFIGS + name, error)
            else:
                self.problems.over(CONFIGS + name)
            if name in diff.left_out:
                diff.left_out[name] |= changed.left_out.get(copy, {})
        self.left_out.note(diff.left_out)

    async def try_changes(self, diff: ConfigDiff) -> None:
        """Leave out of a diff what the destination refuses; nothing is changed."""
        trying = ConfigFilter(self.link.destination, self.link.naming.positions_topic, tries=True)
        tried = await trying.change(diff.changes)
        diff.changes = tried.made
        diff.failures |= tried.failures
        for copy, causes in tried.left_out.items():
            diff.left_out[copy] = causes
