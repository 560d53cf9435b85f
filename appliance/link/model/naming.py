"""Names of copies, positions and transactional ids; and the choice of the topics that are copied."""

import re
from dataclasses import dataclass

from appliance.settings.values import Settings

_POSITIONS = ".positions"
_REPLICATOR = "replicator-"

REGISTRY = "replicator-registry"
"""The topic of a destination cluster in which all of its links look whose a copy is; also a transactional id."""


@dataclass(frozen=True, slots=True)
class Naming:
    """The names of one link."""

    replicator: str
    suffix: str
    included: re.Pattern[str]
    excluded: re.Pattern[str]

    @classmethod
    def of(cls, settings: Settings) -> "Naming":
        """The names that the settings ask for; an empty exclude regex fits no topic."""
        topics = settings.topics
        return cls(settings.replicator, topics.suffix, re.compile(topics.regex), re.compile(topics.exclude_regex))

    @property
    def positions_topic(self) -> str:
        """The topic in which the destination keeps the position of each source partition."""
        return self.replicator + _POSITIONS

    def transactional_id(self, lane: int) -> str:
        """Lane ``lane``'s transactional id."""
        return f"{self.replicator}.lane-{lane}"

    @property
    def doctors_id(self) -> str:
        """The transactional id with which a diagnosis tries whether the destination takes transactions."""
        return f"{self.replicator}.doctor"

    def destination(self, topic: str) -> str:
        """The name of a source topic's copy."""
        return f"{topic}.{self.suffix}"

    def copies(self, topic: str, internal: bool) -> bool:
        """True when a source topic is copied.

        Never Kafka's own topics, a replicator's, or what carries the suffix already: with one suffix for both
        directions, no record travels in circles.
        """
        own = internal or topic == REGISTRY or (topic.startswith(_REPLICATOR) and topic.endswith(_POSITIONS))
        return (
            not own
            and not topic.endswith("." + self.suffix)
            and self.included.fullmatch(topic) is not None
            and self.excluded.fullmatch(topic) is None
        )
