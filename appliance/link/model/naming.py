"""Names of copies, positions and transactional ids; and the choice of the topics that are copied."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from appliance.kafka.protocol.metadata import Partition, Topic
from appliance.link.model.link_topics import LinkTopics
from appliance.link.model.naming_policies import POLICIES, NamingPolicy, OwnCopies
from appliance.settings.transform import OnTransformError
from appliance.settings.values import Settings

_POSITIONS = ".positions"
_OFFSETS = ".offsets"
_GROUPS = ".groups" + _OFFSETS
"""Ends as releases before it expect of a replicator's topic, so that they do not copy it."""
_DIVERGED = ".diverged"
_DOCTOR = ".doctor.internal"
"""An end that no other topic of a link has. Links of releases before it leave such out as other programs' own."""
_REPLICATOR = "replicator-"
ORDER = "replicator-order"
"""The name of the total order of several clusters, in each of them."""

HIDDEN, BEATS = ".hidden", ".beats"
"""Ends of the names of an order's hidden logs, and of its topic of beats."""

_NOTHING = re.compile("(?!)")

DEAD_LETTERS = ".dead-letter"
"""The end of the name of the topic with the records of a copy that the link's SQL failed on."""

FAILBACK = ".failback-"
"""A part of the names of failbacks' links in reverse, between those of the link and of its destination."""

HEARTBEATS = "heartbeats"
"""MirrorMaker 2's topic of the heartbeats that are written in a cluster."""

PRODUCERS = "replicator-producers"
"""The topic of a cluster with the producer ids of the lanes that write shared copies there."""

REGISTRY = "replicator-registry"
"""The topic of a destination cluster with the copies' links; also a transactional id."""


@dataclass(frozen=True, slots=True)
class Naming:
    """The names of one link.

    ``target`` is the destination cluster's own. With ``mirror_formats`` the link writes MirrorMaker 2's heartbeats and
    checkpoints, whose names have the ``separator``. ``internal`` matches topics in which other programs keep their
    state. ``sharing`` says who may write to the copies beside the link. With ``dead_letters`` the link writes the
    records that its SQL fails on to topics of their own. With ``keeps_times`` it writes to no topic that changes the
    times of records; it never writes to such a shared one.
    """

    replicator: str
    policy: NamingPolicy
    included: re.Pattern[str]
    excluded: re.Pattern[str]
    separator: str = "."
    target: str = ""
    mirror_formats: bool = False
    internal: re.Pattern[str] = _NOTHING
    sharing: OwnCopies = field(default_factory=OwnCopies)
    dead_letters: bool = False
    keeps_times: bool = False

    @classmethod
    def of(cls, settings: Settings) -> "Naming":
        """The names by the settings; an empty exclude regex matches no topic."""
        topics = settings.topics
        policy = POLICIES[topics.naming](settings)
        regex = topics.regex if policy.topics is None else "|".join(map(re.escape, policy.topics))
        return cls(
            settings.replicator,
            policy,
            re.compile(regex),
            re.compile(topics.exclude_regex),
            topics.separator,
            settings.destination.cluster_id,
            settings.mirror_formats,
            re.compile(topics.internal_regex),
            policy.sharing(fan_in=topics.fan_in),
            settings.transform.wanted and settings.transform.on_error is OnTransformError.DEAD_LETTER,
        )

    @property
    def source(self) -> str:
        """The source cluster's name."""
        return self.replicator.removeprefix(_REPLICATOR)

    @property
    def opposite(self) -> str:
        """The name of a link from the destination to the source."""
        return _REPLICATOR + self.target

    @property
    def choice(self) -> str:
        """The setting that chooses the topics."""
        return self.policy.choice(self.included.pattern)

    @property
    def topics(self) -> LinkTopics:
        """The source topics that the link copies, by its settings."""
        against = (self.excluded.pattern, self.internal.pattern)
        return LinkTopics(self.included.pattern, tuple(filter(None, against)))

    @property
    def positions_topic(self) -> str:
        """The destination's topic with the position of each source partition."""
        return self.replicator + _POSITIONS

    @staticmethod
    def is_positions(topic: str) -> bool:
        """True for the name of a positions topic of any link."""
        return topic.startswith(_REPLICATOR) and topic.endswith(_POSITIONS)

    def of_link(self, positions: str) -> "Naming":
        """The names of another link with identical names, by its positions topic."""
        return replace(self, replicator=positions.removesuffix(_POSITIONS))

    @property
    def heartbeats_topic(self) -> str:
        """MirrorMaker 2's topic of the heartbeats from the source."""
        return self._from_source(HEARTBEATS)

    @property
    def checkpoints_topic(self) -> str:
        """MirrorMaker 2's topic of the offsets of the source's groups, translated."""
        return self._from_source(f"checkpoints{self.separator}internal")

    @property
    def mirror_topics(self) -> tuple[str, ...]:
        """MirrorMaker 2's topics that the link writes at the destination; none without its formats."""
        return (HEARTBEATS, self.heartbeats_topic, self.checkpoints_topic) if self.mirror_formats else ()

    @property
    def offsets_topic(self) -> str:
        """The destination's topic with the older parts of the offset maps."""
        return self.replicator + _OFFSETS

    @property
    def groups_topic(self) -> str:
        """The destination's topic with the places of groups in the copies."""
        return self.replicator + _GROUPS

    def transactional_id(self, lane: int) -> str:
        """Lane ``lane``'s transactional id."""
        return f"{self.replicator}.lane-{lane}"

    @property
    def lanes_id(self) -> str:
        """The transactional id with which a command changes the link's layout at the destination."""
        return f"{self.replicator}.lanes"

    @property
    def failback(self) -> "Naming":
        """The names of a failback's link in reverse, at the source: no other link from there has the same."""
        return replace(self, replicator=f"{self._failback}{self.target}")

    @property
    def _failback(self) -> str:
        return self.replicator + FAILBACK

    def diverged(self, topic: str) -> str:
        """The source cluster's topic with the uncopied records of a lost source topic; no link copies it."""
        return f"{self.replicator}.{topic}{_DIVERGED}"

    def diverged_partition(self, partition: Partition) -> Partition:
        """The partition of that topic for a source partition."""
        return Partition(self.diverged(partition.topic), partition.number)

    @property
    def doctors_id(self) -> str:
        """The transactional id with which the doctor tests transactions at the destination."""
        return self.replicator + ".doctor"

    @property
    def doctors_topic(self) -> str:
        """The destination's topic to which the doctor writes; it is removed again, and no link copies it."""
        return self.replicator + _DOCTOR

    def destination(self, topic: str) -> str:
        """The name of a source topic's copy."""
        return self.policy.copy_of(topic)

    def _from_source(self, topic: str) -> str:
        return self.source + self.separator + topic

    def copies(self, topic: str, internal: bool, others: Container[str] = ()) -> bool:
        """True when a source topic is copied, beside ``others``; ``internal`` says that it is one of Kafka's own."""
        return self._is_wanted(topic, others) and not self._reason_against(topic, internal, others)

    def copied(self, topics: Mapping[str, Topic]) -> list[Topic]:
        """Those of the source's topics that are copied."""
        return [topic for topic in topics.values() if self.copies(topic.name, topic.internal, topics)]

    def left_out(self, topic: str, internal: bool, others: Container[str] = ()) -> str:
        """The reason that a source topic is not copied though its name matches; empty if there is none."""
        return self._reason_against(topic, internal, others) if self._is_wanted(topic, others) else ""

    def _is_wanted(self, topic: str, others: Container[str]) -> bool:
        return self.included.fullmatch(topic) is not None or self._tells_of_further_clusters(topic, others)

    def _reason_against(self, topic: str, internal: bool, others: Container[str]) -> str:
        if internal:
            return "Kafka's own topic"
        if self.is_a_replicators(topic):
            return "a topic in which a replicator keeps its state"
        if self.policy.travels_back(topic):
            return f"a copy from {self.target or 'the destination'}"
        if self.excluded.fullmatch(topic):
            return "REPLICA_TOPICS_EXCLUDE_REGEX matches it"
        if self.internal.fullmatch(topic) and not self._tells_of_further_clusters(topic, others):
            return "REPLICA_TOPICS_INTERNAL_REGEX matches it"
        return ""

    def takes_for_a_replicators(self, topic: str, others: Container[str]) -> bool:
        """True for a topic that is excluded by its name alone, given the ``others`` of its cluster.

        A cluster to which replicators write has their registry, and each topic of maps of offsets has one of positions
        beside it. Topics of this link's failbacks are not among these.
        """
        if not _is_named_like_a_replicators(topic) or self.included.fullmatch(topic) is None:
            return False
        if topic.startswith(self._failback) or (topic.startswith(f"{self.replicator}.") and topic.endswith(_DIVERGED)):
            return False
        link = topic.removesuffix(_GROUPS).removesuffix(_OFFSETS).removesuffix(_DOCTOR)
        positions = topic if link == topic else link + _POSITIONS
        return self.excluded.fullmatch(topic) is None and not (REGISTRY in others and positions in others)

    def meets_dead_letters_of(self, topic: str, others: Container[str]) -> str:
        """The one of the ``others`` of the source cluster whose dead letters have the name of this topic's copy."""
        copy = self.destination(topic)
        letters_of = copy.removesuffix(DEAD_LETTERS)
        other = self.policy.source_of(letters_of) if self.dead_letters and letters_of != copy else None
        return other if other and other in others and self.copies(other, internal=False) else ""

    def is_a_replicators(self, topic: str) -> bool:
        """True for the internal topics of replicators, including MirrorMaker 2 if the link has names like its own."""
        if topic in (REGISTRY, PRODUCERS) or _is_named_like_a_replicators(topic):
            return True
        names = topic.split(self.separator)
        remembered = names[-1] == "internal" and (names[0] == "mm2-offset-syncs" or names[-2:-1] == ["checkpoints"])
        return (remembered and (self.policy.of_mirror_maker or self.mirror_formats)) or (
            topic == HEARTBEATS and self.policy.of_mirror_maker and self.mirror_formats
        )

    def _tells_of_further_clusters(self, topic: str, others: Container[str]) -> bool:
        """True for MirrorMaker 2's heartbeats that came to the source: its client counts hops by them.

        Beside them are checkpoints from the same cluster, or our positions; other topics may have such names.
        """
        if not (self.mirror_formats and self.policy.of_mirror_maker and topic.endswith(self.separator + HEARTBEATS)):
            return False
        further = replace(self, replicator=_REPLICATOR + topic.split(self.separator)[0])
        return further.checkpoints_topic in others or further.positions_topic in others


_OWN_ENDS = (_POSITIONS, _OFFSETS, _DIVERGED, _DOCTOR, HIDDEN, BEATS)


def _is_named_like_a_replicators(topic: str) -> bool:
    return topic.startswith(_REPLICATOR) and topic.endswith(_OWN_ENDS)
