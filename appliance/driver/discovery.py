"""Looking at both clusters every few seconds: the topics, and the copies to make or grow first."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from appliance.driver.acl_follower import AclFollower
from appliance.driver.config_follower import ConfigFollower
from appliance.engine.model.round_robin import RoundRobin
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, LinkRefused
from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.client.configs import POLICY, set_on, try_describe
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.topics import grow_topics, hidden_topics, require_led
from appliance.kafka.protocol.metadata import Metadata, Topic
from appliance.link.client.checkpoint_log import NewestStates
from appliance.link.client.registry import Registry
from appliance.link.client.retry import retry_while_busy
from appliance.link.client.source_rules import SourceRules
from appliance.link.model.claims import belongs_to_another
from appliance.link.model.copied_acls import principal_of
from appliance.link.model.copy_states import States
from appliance.link.model.link_check import was_deleted
from appliance.link.model.naming import Naming
from appliance.link.model.replicas import DiscoveredTopics, Replica, discover, obeying, too_small, waiting, without
from appliance.link.model.topic_configs import BY_HAND, missed, new_copies, own_configs, told, unknown
from appliance.settings.values import TopicSettings

log = logging.getLogger("appliance.replicator")

_CHANGED = "the state of its copy was changed just now: it is looked at again"

_CONFIGS_FOLLOWED_IN = 5
_CONFIGS_A_LOOK = 50
"""Largest number of topics whose configuration is read in one look; of few topics, a fifth is read."""

_STATES_PATIENCE = 2.0
"""Timeout for reading the states from the first lane's partition, in seconds; after it, a look works without them."""

_SHOWN_PATIENCE = 2.0
_PAUSE_MAX = 0.1


@dataclass(slots=True)
class TopicDiscovery:
    """Looks at both clusters, and keeps the copies' topics like their sources; ``user`` is ours at the destination."""

    source: Cluster
    destination: Cluster
    naming: Naming
    topics: TopicSettings
    user: str = ""
    problems: ProblemLog = field(default_factory=ProblemLog)
    _round_robin: RoundRobin = field(default_factory=lambda: RoundRobin(_CONFIGS_FOLLOWED_IN, _CONFIGS_A_LOOK))
    _left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    _said_untold: bool = False
    _filter: ConfigFilter = field(init=False)
    _configs: ConfigFollower = field(init=False)
    _acls: AclFollower = field(init=False)
    _registry: Registry = field(init=False)
    _rules: SourceRules = field(init=False)
    _known: tuple[Metadata, Metadata, States] | None = None
    _states: NewestStates = field(init=False)
    _untold: ApplianceError | None = None
    _found: DiscoveredTopics = field(default_factory=DiscoveredTopics)
    _copied: tuple[Replica, ...] = ()

    def __post_init__(self) -> None:
        self._registry = Registry.of(self.destination, self.naming, self.topics.replication_factor)
        clusters = self.source, self.destination
        self._configs = ConfigFollower(*clusters, self.naming, self.topics, self._registry, self.problems)
        self._filter, self._states = self._configs.filter, self._configs.states
        self._rules = SourceRules(self.source, self.naming, self.topics.one_writer)
        self._acls = AclFollower(*clusters, self._registry, self._states, principal_of(self.user), self.problems)

    async def look(self) -> DiscoveredTopics:
        """One look: make missing copies, grow our copies that are too small, and repeat the look.

        Copies of paused or promoted topics stay as they are. So do all while the states are unknown: existing copies
        are written, since each lane obeys the states that it has read itself (invariant M).

        Raises:
            LinkRefused: the link was deleted.
        """
        await self._registry.refresh()
        unreadable = self._registry.unreadable.items()
        self.problems.keep("registry", {f"registry {of[0][0] if of else ''}": error for of, error in unreadable})
        if self._registry.deletion:
            raise LinkRefused(was_deleted(self.naming.replicator, self._registry.deletion))
        found = await self._discover()
        made = {topic.name for topic in found.missing}
        failures = await self._make(found.missing) if found.missing else {}
        foreign = await self._grow(found.smaller) if found.smaller else {}
        if found.missing or found.smaller:
            unfit = failures | foreign
            changed = {
                self.naming.destination(topic.name): len(topic.leaders)
                for topic in (*found.missing, *(topic for topic, _ in found.smaller))
                if topic.name not in unfit
            }
            await self._until_shown(changed)
            found = await self._discover()
            found = replace(found, unfit={**found.unfit, **unfit})
        found = await self._without_others(found)
        topics = dict.fromkeys(replica.source_topic for replica in found.replicas)
        self._copied = found.replicas
        if self._untold is None:
            new = [name for name in topics if name in made]
            due = dict.fromkeys((*self._round_robin.next(topics), *new[:_CONFIGS_A_LOOK]))
            self._leave_out(await self._configs.follow(list(due), found.replicas))
        left_out = {name: tuple(sorted(self._left_out[name])) for name in topics if name in self._left_out}
        ids = {replica.source_topic: (replica.destination_topic, replica.destination_id) for replica in found.replicas}
        await self._registry.note({ids[name]: settings for name, settings in left_out.items()})
        if self.topics.follows_acls and self._untold is None:
            await self._acls.follow({name: copy for name, (copy, _) in ids.items()})
        return replace(found, left_out={name: settings for name, settings in left_out.items() if settings})

    async def _discover(self) -> DiscoveredTopics:
        source, destination = await self.source.metadata(None), await self.destination.metadata(None)
        known, told = self._known, await self._states.try_read(_STATES_PATIENCE)
        self._untold = told if isinstance(told, ApplianceError) else None
        states = (known[2] if known else {}) if isinstance(told, ApplianceError) else told
        if known is None or known[0] is not source or known[1] is not destination or known[2] != states:
            _tell(states, known[2] if known else {})
            self._found = obeying(discover(source, destination, self.naming), states)
            self._known = source, destination, states
        found = without(self._found, await self._rules.unfit(source.topics))
        return waiting(found, self._copied, str(self._untold)) if self._untold else found

    async def _without_others(self, found: DiscoveredTopics) -> DiscoveredTopics:
        """Claim the copies for this link; copies of another link are not written (invariant I)."""
        copies = {replica.destination_topic: replica.destination_id for replica in found.replicas}

        async def active() -> Collection[str]:
            states = await self._states.read()
            found_now = obeying(found, states)
            return {replica.destination_topic for replica in found_now.replicas}

        if self._untold is not None:
            found, others = self._without_unclaimed(found), self._registry.of_others(copies)
        else:
            others = await self._registry.claim(copies, still=active)
            # A link in the other direction may have been made since the look: of two, the later one sees the other's.
            known = self._known[0].topics if self._known else {}
            topics = {replica.source_topic for replica in found.replicas}
            found = without(found, await self._rules.circles(known[name] for name in topics & known.keys()))
        if not others:
            return found
        refused = {r.source_topic: r.destination_topic for r in found.replicas if r.destination_topic in others}
        unfit = {topic: belongs_to_another(copy, others[copy], self.naming) for topic, copy in refused.items()}
        return without(found, unfit)

    def _without_unclaimed(self, found: DiscoveredTopics) -> DiscoveredTopics:
        """The same without copies that are not claimed yet: a claim needs the states, by which it may be given up."""
        claims = self._registry.claims
        others = [each for each in found.replicas if (each.destination_topic, each.destination_id) not in claims]
        return without(found, dict.fromkeys({each.source_topic for each in others}, str(self._untold)))

    async def _until_shown(self, partitions: Mapping[str, int]) -> None:
        """Wait until this many partitions of each copy have a leader that knows of it, or for two seconds.

        The controller has answered by then, but other brokers lag a moment; without the wait, copying of the topic
        would begin only after the next look.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SHOWN_PATIENCE):
                await retry_while_busy(partial(require_led, self.destination, partitions), longest_pause=_PAUSE_MAX)

    async def _make(self, missing: Sequence[Topic]) -> dict[str, str]:
        """Make copies; the reason, by source topic, for those that cannot be made or seen."""
        described, undescribed = await try_describe(self.source, [topic.name for topic in missing])
        follow = self.topics.configs_to_follow
        set_at_source = {name: follow(set_on(settings)) for name, settings in described.items()}
        if described and not any(described.values()) and not self._said_untold:
            self._said_untold = True
            log.warning("the source does not tell the settings of topics: copies get those of the destination")
        known = await self._filter.known()
        wanted = new_copies(
            [topic for topic in missing if topic.name in described],
            set_at_source,
            self.naming,
            self.topics.replication_factor,
            known,
            compacts=self.topics.compacts_new_copies,
        )
        if not self.naming.sharing.others_write:
            await self._registry.note_configs({new.name: own_configs(new.configs) for new in wanted})
        active = {self.naming.destination(name) for name in await self._states.still_active(described)}
        made = await self._filter.make([new for new in wanted if new.name in active])
        for new in made.topics:
            log.info("topic made", extra={"fields": {"topic": new.name, "partitions": new.partitions}})
        kept = {new.name: new.configs for new in made.topics}
        hidden = await hidden_topics(self.destination, made.there)
        left_out, failures = {}, {name: str(error) for name, error in undescribed.items()}
        failures |= {name: _CHANGED for name in described if self.naming.destination(name) not in active}
        for topic in missing:
            copy = self.naming.destination(topic.name)
            if copy in kept:
                refused = missed(made.left_out.get(copy, {}), kept[copy])
                left_out[topic.name] = unknown(set_at_source[topic.name], known) | refused
                if self.naming.sharing.others_write and kept[copy].get(POLICY) != set_at_source[topic.name].get(POLICY):
                    left_out[topic.name] |= {POLICY: BY_HAND}
            elif copy in made.failures:
                failures[topic.name] = str(made.failures[copy])
            elif copy in hidden:
                failures[topic.name] = f"DESTINATION_API_KEY may not see topic {copy}: grant it Describe there"
        self._leave_out(left_out)
        return failures

    def _leave_out(self, left_out: Mapping[str, Mapping[str, str]]) -> None:
        """Note the settings that copies lack, and log them once."""
        news = {}
        for topic, causes in left_out.items():
            if new := {key: why for key, why in causes.items() if key not in self._left_out.get(topic, {})}:
                news[self.naming.destination(topic)] = new
            self._left_out[topic] = dict(causes)
        if news:
            log.warning("settings left out", extra={"fields": told(news)})

    async def _grow(self, smaller: Sequence[tuple[Topic, Topic]]) -> dict[str, str]:
        """Grow the copies that are ours by positions or claims, or that links share with ours; the reason, by source
        topic, for the others.
        """
        ours = await self._claimed_by_us()
        if any(copy.id not in ours for _, copy in smaller):
            ours |= await self._written_by_us()
        active = await self._states.still_active([topic.name for topic, _ in smaller])
        growing = {copy.name: len(topic.leaders) for topic, copy in smaller if copy.id in ours and topic.name in active}
        failures = await grow_topics(self.destination, growing) if growing else {}
        for name, partitions in growing.items():
            if name not in failures:
                log.info("partitions added", extra={"fields": {"topic": name, "partitions": partitions}})
        foreign = {topic.name: too_small(topic, copy) for topic, copy in smaller if copy.id not in ours}
        failed = {topic.name: str(failures[copy.name]) for topic, copy in smaller if copy.name in failures}
        changed = {topic.name: _CHANGED for topic, _ in smaller if topic.name not in active}
        return {**changed, **foreign, **failed}

    async def _written_by_us(self) -> set[uuid.UUID]:
        checkpoints = await self._states.checkpoints()
        return {held.destination_id for checkpoint in checkpoints for held in checkpoint.positions.values()}

    async def _claimed_by_us(self) -> set[uuid.UUID]:
        """Ids of the copies that this link claims, written or not, or that others let it write."""
        await self._registry.refresh()
        claims, link = self._registry.claims.items(), self.naming.replicator
        return {topic_id for (_, topic_id), claim in claims if claim.link == link or claim.admits(self.naming)}


def _tell(states: States, before: States) -> None:
    for record in states.values():
        if record != before.get(record.topic):
            fields = {"of": record.subject, "state": record.state, "by": record.by, "why": record.why}
            log.info("state", extra={"fields": fields})
