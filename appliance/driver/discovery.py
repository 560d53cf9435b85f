"""The search for topics: it asks both clusters every few seconds, and makes or grows the copies first."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from appliance.driver.acl_follower import AclFollower
from appliance.driver.config_follower import ConfigFollower
from appliance.driver.copy_topics import CopyTopics
from appliance.driver.task_reports import Ending
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, LinkRefused
from appliance.kafka.protocol.metadata import Metadata
from appliance.link.client.source_rules import SourceRules
from appliance.link.handle import Link
from appliance.link.model.claims import belongs_to_another
from appliance.link.model.copied_acls import principal_of
from appliance.link.model.copy_states import States
from appliance.link.model.link_check import was_deleted
from appliance.link.model.problems import CLAIMS
from appliance.link.model.replicas import DiscoveredTopics, Replica, discover, obeying, waiting, without
from appliance.settings.values import TopicSettings

log = logging.getLogger("appliance.replicator")

_STATES_PATIENCE = 2.0
"""Timeout for reading the states from the first lane's partition, in seconds; after it, a search does without them."""


@dataclass(slots=True)
class TopicDiscovery:
    """Searches for topics, and keeps those of copies like their sources; ``user`` is ours at the destination."""

    link: Link
    topics: TopicSettings
    user: str = ""
    problems: ProblemLog = field(default_factory=ProblemLog)
    _configs: ConfigFollower = field(init=False)
    _acls: AclFollower = field(init=False)
    _copies: CopyTopics = field(init=False)
    _rules: SourceRules = field(init=False)
    _facts: tuple[Metadata, Metadata, States] | None = None
    _states_failure: ApplianceError | None = None
    _matching: DiscoveredTopics = field(default_factory=DiscoveredTopics)
    _copied: tuple[Replica, ...] = ()

    def __post_init__(self) -> None:
        self._configs = ConfigFollower(self.link, self.topics, self.problems)
        self._acls = AclFollower(self.link, principal_of(self.user), self.problems)
        self._copies = CopyTopics(self.link, self.topics, self._configs)
        self._rules = SourceRules(self.link.source, self.link.destination, self.link.naming, self.topics.one_writer)

    async def search(self) -> DiscoveredTopics:
        """Make missing copies, grow our copies that are too small, and search again.

        Copies of paused or promoted topics stay as they are. So do all while the states are unknown: existing copies
        are written, since each lane obeys the states that it has read itself (invariant M). LinkRefused if the link was
        deleted.
        """
        await self.link.registry.refresh()
        unreadable = self.link.registry.ledger.unreadable.items()
        self.problems.keep(CLAIMS, {f"{CLAIMS}{of[0][0] if of else ''}": error for of, error in unreadable})
        if self.link.registry.ledger.deletion:
            raise LinkRefused(was_deleted(self.link.naming.replicator, self.link.registry.ledger.deletion))
        topics = await self._discover()
        new = {topic.name for topic in topics.missing}
        if topics.missing or topics.smaller:
            unfit = await self._copies.update(topics)
            topics = await self._discover()
            topics = replace(topics, unfit={**topics.unfit, **unfit})
        topics = await self._without_others(topics)
        self._copied = topics.replicas
        return await self._follow(topics, new)

    async def _follow(self, topics: DiscoveredTopics, new: Collection[str]) -> DiscoveredTopics:
        """Have the settings and ACLs of copies follow those of their sources; ``new`` topics have just got a copy."""
        ids = {replica.source_topic: (replica.destination_topic, replica.destination_id) for replica in topics.replicas}
        if self._states_failure is None:
            await self._configs.follow(ids, topics.replicas, new)
        left_out = self._configs.left_out.of(ids)
        await self.link.registry.note({ids[name]: settings for name, settings in left_out.items()})
        if self.topics.follows_acls and self._states_failure is None:
            await self._acls.follow({name: copy for name, (copy, _) in ids.items()})
        return replace(topics, left_out={name: settings for name, settings in left_out.items() if settings})

    async def _discover(self) -> DiscoveredTopics:
        source, destination = await self.link.source.metadata(None), await self.link.destination.metadata(None)
        before, answer = self._facts, await self.link.lanes.try_read(_STATES_PATIENCE)
        self._states_failure = answer if isinstance(answer, ApplianceError) else None
        states = (before[2] if before else {}) if isinstance(answer, ApplianceError) else answer
        if before is None or before[0] is not source or before[1] is not destination or before[2] != states:
            _log_changes(states, before[2] if before else {})
            self._matching = obeying(discover(source, destination, self.link.naming), states)
            self._facts = source, destination, states
        topics = without(self._matching, await self._rules.unfit(source.topics))
        return waiting(topics, self._copied, str(self._states_failure)) if self._states_failure else topics

    async def _without_others(self, topics: DiscoveredTopics) -> DiscoveredTopics:
        """Claim the copies for this link; copies of another link are not written (invariant I)."""
        copies = {replica.destination_topic: replica.destination_id for replica in topics.replicas}

        async def active() -> Collection[str]:
            states = await self.link.lanes.read()
            return {replica.destination_topic for replica in obeying(topics, states).replicas}

        if self._states_failure is not None:
            topics, others = self._without_unclaimed(topics), self.link.registry.ledger.of_others(copies)
        else:
            others = await self.link.registry.claim(copies, still=active)
            # A link in the other direction may have been made since the search: of two, the later one sees the other's.
            at_source = self._facts[0].topics if self._facts else {}
            names = {replica.source_topic for replica in topics.replicas}
            topics = without(topics, await self._rules.circles(at_source[name] for name in names & at_source.keys()))
        if not others:
            return topics
        refused = {r.source_topic: r.destination_topic for r in topics.replicas if r.destination_topic in others}
        unfit = {topic: belongs_to_another(copy, others[copy], self.link.naming) for topic, copy in refused.items()}
        return without(topics, unfit)

    def _without_unclaimed(self, topics: DiscoveredTopics) -> DiscoveredTopics:
        """The same without copies that are not claimed yet: a claim needs the states, by which it may be given up."""
        claims = self.link.registry.ledger.claims
        others = [each for each in topics.replicas if (each.destination_topic, each.destination_id) not in claims]
        return without(topics, dict.fromkeys({each.source_topic for each in others}, str(self._states_failure)))


def _log_changes(states: States, before: States) -> None:
    for record in states.values():
        if record != before.get(record.topic):
            fields = {"of": record.subject, "state": record.state, "by": record.by, "why": record.why}
            log.info("state", extra={"fields": fields})


@dataclass(slots=True)
class Search:
    """The service that searches for topics; ``take`` is called with the replicas when they have changed."""

    name: ClassVar[str] = "discovery"
    discovery: TopicDiscovery
    pause: float
    take: Callable[[Sequence[Replica]], None]
    ending: Ending
    _replicas: tuple[Replica, ...] = ()
    _has_warned: bool = False

    async def step(self) -> None:
        """Search for topics once."""
        try:
            topics = await self.discovery.search()
        except LinkRefused as error:  # deleted meanwhile: retrying is useless
            self.ending.end(error)
            raise
        unfit = {f"topic {name}": ApplianceError(fault) for name, fault in topics.unfit.items()}
        self.discovery.problems.keep("topic ", unfit)
        if not (topics.replicas or topics.unfit or topics.inactive or self._has_warned):
            self._has_warned = True
            log.warning(f"{self.discovery.link.naming.choice} matches no topic of the source yet")
        if topics.replicas != self._replicas:
            self._replicas = topics.replicas
            count = len({replica.source_topic for replica in topics.replicas})
            log.info("topics to copy", extra={"fields": {"topics": count, "partitions": len(topics.replicas)}})
            self.take(topics.replicas)
