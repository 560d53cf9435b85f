"""The names of copies, one class for each kind of REPLICA_TOPICS_NAMING; and the rules by who writes to the copies."""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import ClassVar

from appliance.settings.values import Settings, TopicNaming


@dataclass(frozen=True, slots=True)
class OwnCopies:
    """Copies to which the link alone writes."""

    others_write: ClassVar[bool] = False
    """True if others may write to a copy at any time: its end is known only after each write."""
    tells_origins: ClassVar[bool] = False
    """True if what links wrote at the source is not copied: their lanes leave their names there."""


class SharedCopies(OwnCopies):
    """Copies of a fan-in: several links write to them, and each lane leaves its name at the destination."""

    others_write = True


class IdenticalCopies(SharedCopies):
    """Copies with their sources' names: links and producers write on both sides."""

    tells_origins = True


@dataclass(frozen=True, slots=True)
class NamingPolicy:
    """The names of a link's copies: those of their source topics between ``before`` and ``after``."""

    before: str = ""
    after: str = ""

    variable: ClassVar[str] = "REPLICA_TOPICS_NAMING"
    """The setting that separates the names of this link's copies from others."""
    chosen_by: ClassVar[str] = "REPLICA_TOPICS_SOURCE_REGEX"
    """The setting that chooses the topics."""
    shows_origin: ClassVar[bool] = True
    """True if a copy is known by its name; otherwise the claims at the source tell."""
    of_mirror_maker: ClassVar[bool] = False
    """True of the names of MirrorMaker 2."""

    @property
    def topics(self) -> Set[str] | None:
        """The only topics that are copied, by their names; None: those that the expression of the settings matches."""
        return None

    def choice(self, regex: str) -> str:
        """The setting that chooses the topics, with the expression that matches them."""
        return f"{self.chosen_by}={regex}"

    def copy_of(self, topic: str) -> str:
        """The name of a source topic's copy."""
        return self.before + topic + self.after

    def source_of(self, copy: str) -> str | None:
        """The source topic whose copy has this name; None: there is none."""
        topic = copy[len(self.before) : len(copy) - len(self.after)]
        return topic if topic and self.copy_of(topic) == copy else None

    def renamed(self, copies: Mapping[str, str]) -> Mapping[str, str]:
        """Existing copies, by source topic, if they would have other names: all of them, or none."""
        return {} if any(self.copy_of(topic) == copy for topic, copy in copies.items()) else copies

    def sharing(self, *, fan_in: bool) -> OwnCopies:
        """The rules for copies with these names; with ``fan_in`` several links write to them on purpose."""
        return SharedCopies() if fan_in else OwnCopies()

    def travels_back(self, topic: str) -> bool:
        """True for the name of a copy by an opposite link with the same policy, to avoid circles.

        Both links have the same suffix, or the name has this link's twice: once, it may be a user's.
        """
        twice = re.escape(self.after) + "(?=[._-])"
        return bool(self.after) and (topic.endswith(self.after) or len(re.findall(twice, topic)) > 1)


class Suffix(NamingPolicy):
    """``orders.copy`` for ``orders``."""

    variable = "REPLICA_TOPICS_DEST_SUFFIX"


@dataclass(frozen=True, slots=True)
class Prefix(NamingPolicy):
    """``orange.orders`` for ``orders`` of the cluster ``orange``: MirrorMaker 2's ``DefaultReplicationPolicy``."""

    target: str = ""
    separator: str = "."
    variable: ClassVar[str] = "SOURCE_CLUSTER_ID"
    of_mirror_maker: ClassVar[bool] = True

    def travels_back(self, topic: str) -> bool:
        """The destination's name precedes the topic's, first or after those of more clusters on the way."""
        return self.target in topic.split(self.separator)[:-1]


@dataclass(frozen=True, slots=True)
class Map(NamingPolicy):
    """The topics of a list alone, each with any name for its copy."""

    names: Mapping[str, str] = field(default_factory=dict)
    variable: ClassVar[str] = "REPLICA_TOPICS_NAMES"
    chosen_by: ClassVar[str] = "REPLICA_TOPICS_NAMES"
    shows_origin: ClassVar[bool] = False

    @property
    def topics(self) -> Set[str]:
        """The topics of the list."""
        return self.names.keys()

    def copy_of(self, topic: str) -> str:
        """The name by the list; for other topics one that no topic can have."""
        return self.names.get(topic, f"{topic} (not in {self.variable})")

    def source_of(self, copy: str) -> str | None:
        """The topic by the list."""
        return next((topic for topic, name in self.names.items() if name == copy), None)

    def choice(self, regex: str) -> str:  # noqa: ARG002
        """The list."""
        return self.chosen_by

    def renamed(self, copies: Mapping[str, str]) -> Mapping[str, str]:
        """Those that have other names in the list, or none: its topics are given up before they leave it."""
        return {topic: copy for topic, copy in copies.items() if self.copy_of(topic) != copy}


class Exact(Map):
    """One topic, and any name for its copy."""

    variable = "REPLICA_TOPICS_DEST_NAME"
    chosen_by, choice = NamingPolicy.chosen_by, NamingPolicy.choice


class Identical(NamingPolicy):
    """The source topic's own name."""

    shows_origin = False

    def sharing(self, *, fan_in: bool) -> OwnCopies:  # noqa: ARG002
        """The rules for copies in which the records of both sides lie."""
        return IdenticalCopies()


POLICIES: Mapping[TopicNaming, Callable[[Settings], NamingPolicy]] = {
    TopicNaming.SUFFIX: lambda of: Suffix(after=of.topics.separator + of.topics.suffix),
    TopicNaming.GLOBAL: lambda _: NamingPolicy(after="-global"),
    TopicNaming.PREFIX: lambda of: Prefix(
        of.source.cluster_id + of.topics.separator, "", of.destination.cluster_id, of.topics.separator
    ),
    TopicNaming.EXACT: lambda of: Exact(names={of.topics.regex: of.topics.name}),
    TopicNaming.MAP: lambda of: Map(names=dict(of.topics.pairs)),
    TopicNaming.IDENTICAL: lambda _: Identical(),
}
"""The policy of each kind, by the settings."""
