"""The settings of the topics that are copied, and of the groups whose offsets follow; parsers of their names."""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from appliance.settings.parsers import choice, expecting, listed, matching, seconds, whole, yes_or_no
from appliance.settings.variable import REQUIRED, variable
from appliance.timestamps import since_1970

TOPIC_NAME_MAX = 249
"""Characters in the name of a Kafka topic, at most."""

topic_name = matching(
    rf"((?!__|\.{{1,2}}$)[a-zA-Z0-9._-]{{1,{TOPIC_NAME_MAX}}})?",
    f"a topic's name: 1 to {TOPIC_NAME_MAX} of the characters a-z A-Z 0-9 . _ -",
)
"""A topic's name; may be empty. Names that begin with two underscores are Kafka's own, as some clients treat them."""


def topic_suffix(value: str) -> str:
    """The end of a copy's name: legal in a topic's name, with room for a dot and at least one character before it."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]*", value):
        raise ValueError("expected only characters that are legal in a topic name: a-z A-Z 0-9 . _ -")
    if len(value) > TOPIC_NAME_MAX - 2:
        raise ValueError(f"expected at most {TOPIC_NAME_MAX - 2} characters: a topic name has {TOPIC_NAME_MAX} at most")
    return value


def regular_expression(value: str) -> str:
    """A regular expression in Python's grammar, which compiles it within limits."""
    try:
        re.compile(value)
    except (OverflowError, RecursionError) as error:
        raise ValueError("expected a regular expression with smaller numbers and fewer nested brackets") from error
    except re.error as error:
        where = "" if error.pos is None else f" at character {error.pos + 1}"
        raise ValueError(f"expected a regular expression: {error.msg}{where}") from error
    return value


def topics_regex(value: str) -> str:
    """A regular expression of topics' names; a comma of a list, as MirrorMaker 2 has it, would match nothing."""
    if "," in value and (parts := _split(value)) != [value]:
        regex = "|".join(part.strip() for part in parts)
        raise ValueError(f"expected a regular expression: topics have no comma in their names; a list is {regex}")
    return regular_expression(value)


def regexes(value: str) -> str:
    """Regular expressions, comma separated, as one that matches what any of them does; a comma in brackets is its own.

    MirrorMaker 2 lists topics and groups so.
    """
    parts = [regular_expression(part.strip()) for part in _split(value)]
    return "|".join(f"(?:{part})" for part in parts if part)


def _split(value: str) -> list[str]:
    """The text between commas that are neither escaped nor inside of brackets."""
    return re.findall(r"((?:\\.|\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[^,])+)", value)


_BOUND_TO_A_CLUSTER = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
"""Settings of topics that mean nothing in another cluster, as MirrorMaker 2 has it."""

_OF_OTHER_PROGRAMS = ("__.*", r".*[-.]internal", r".*\.replica", r".*\.checkpoints\..*", "heartbeats")
"""Topics of Kafka, MirrorMaker 2, Kafka Connect, and of their kind: MirrorMaker 2 leaves them out too."""

_GROUPS_OF_TOOLS = "console-consumer-.*,connect-.*,__.*"

_replication_factor = expecting(
    "-1 for the broker's default, or a whole number from 1 to 32767",
    lambda value: -1 if value == "-1" else whole(1, 32767)(value),
)
_separator = matching(r"[._-]{1,10}", "at most 10 of the characters . _ -")


_AGE_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class Start:
    """The place where the copy of a partition begins when the link is new: at an end of its log, or at a time.

    The time is the link's beginning without its ``age``, or ``fixed``, both in milliseconds.
    """

    text: str
    age: int | None = None
    fixed: int | None = None
    EARLIEST: ClassVar["Start"]
    LATEST: ClassVar["Start"]

    @classmethod
    def parse(cls, text: str) -> "Start":
        """Read ``earliest``, ``latest``, an age such as ``24h``, or a time of ISO 8601."""
        for end in (cls.EARLIEST, cls.LATEST):
            if text.lower() in (end.text, ""):
                return end
        if age := re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text):
            return cls(text, int(age[1]) * _AGE_UNITS[age[2]] // timedelta(milliseconds=1))
        try:
            return cls(text, fixed=since_1970(text))
        except ValueError as error:
            expected = "earliest, latest, an age such as 90m, 24h or 7d, or a time such as 2026-11-01T00:00:00Z"
            raise ValueError(f"expected {expected}") from error

    def time(self, now: int) -> int | None:
        """The time of the first records to copy, given when the link is made, both in milliseconds; None: no time."""
        return self.fixed if self.age is None else max(0, now - self.age)


Start.EARLIEST, Start.LATEST = Start("earliest"), Start("latest")


class TopicNaming(enum.StrEnum):
    """The way in which a copy gets its name."""

    SUFFIX = "suffix"
    GLOBAL = "global"
    PREFIX = "prefix"
    EXACT = "exact"
    IDENTICAL = "identical"
    MAP = "map"

    @property
    def needless(self) -> tuple[str, ...]:
        """The fields of TopicSettings that such names do without."""
        return {TopicNaming.SUFFIX: (), TopicNaming.MAP: ("suffix", "regex")}.get(self, ("suffix",))


def _pair(entry: str) -> tuple[str, str]:
    topic, _, copy = entry.partition("=")
    if not (topic and copy):
        raise ValueError("expected topic=copy")
    return topic_name(topic), topic_name(copy)


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Topics with the names of their copies: ``a=b,c=d``."""
    pairs = listed(_pair)(text)
    for names in zip(*pairs, strict=True):
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"expected each topic and each copy once, got {twice[0]} twice")
    return pairs


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The topics that are copied, and the names and properties of their copies."""

    regex: str = variable("REPLICA_TOPICS_SOURCE_REGEX", topics_regex, REQUIRED).purpose(
        "Topics to copy: a regular expression that matches the whole name."
    )
    suffix: str = variable("REPLICA_TOPICS_DEST_SUFFIX", topic_suffix, REQUIRED).purpose(
        "Suffix of a copy's name: copy makes topic.copy of topic."
    )
    naming: TopicNaming = variable("REPLICA_TOPICS_NAMING", choice(TopicNaming), "suffix").purpose(
        "Kind of a copy's name: suffix, prefix, global, exact, identical or map (docs/run/names.md)."
    )
    name: str = variable("REPLICA_TOPICS_DEST_NAME", topic_name).purpose(
        "Name of the copy with REPLICA_TOPICS_NAMING=exact; REPLICA_TOPICS_SOURCE_REGEX is then a topic's name."
    )
    pairs: tuple[tuple[str, str], ...] = variable("REPLICA_TOPICS_NAMES", _pairs).purpose(
        "Topics to copy with REPLICA_TOPICS_NAMING=map, each with its copy's name: a=b,c=d."
    )
    separator: str = variable("REPLICA_TOPICS_SEPARATOR", _separator, ".").purpose(
        "Characters between a topic's name and the suffix or prefix."
    )
    exclude_regex: str = variable("REPLICA_TOPICS_EXCLUDE_REGEX", regular_expression).purpose(
        "Matching topics that are not copied: a regular expression for the whole name; empty: none."
    )
    fan_in: bool = variable("REPLICA_FAN_IN", yes_or_no, "no").purpose(
        "Several links write the same copies on purpose: yes or no; all of them must say so."
    )
    one_writer: bool = variable("REPLICA_ONE_WRITER_PER_KEY", yes_or_no, "no").purpose(
        "Copy compacted topics to shared copies, since each key is written in one cluster only: yes or no."
    )
    internal_regex: str = variable("REPLICA_TOPICS_INTERNAL_REGEX", regexes, ",".join(_OF_OTHER_PROGRAMS)).purpose(
        "Topics in which other programs keep their state, not copied either: regular expressions; (?!): none."
    )
    start: Start = variable("REPLICA_TOPICS_START", Start.parse, "earliest").purpose(
        "Start of a partition's copy when the link is new: earliest, latest, an age (90m, 24h, 7d) or a UTC time."
    )
    replication_factor: int = variable("REPLICATION_FACTOR", _replication_factor, "-1").purpose(
        "Replication factor of new topics at the destination; -1: its brokers' default."
    )
    follows_configs: bool = variable("CONFIGS_SYNC", yes_or_no, "yes").purpose(
        "Set on a copy what is set on its source topic, whenever that changes: yes, or no for new copies only."
    )
    configs_exclude_regex: str = variable("CONFIGS_EXCLUDE_REGEX", regexes, ",".join(_BOUND_TO_A_CLUSTER)).purpose(
        "Settings of topics that copies do not get: regular expressions for whole names, comma separated."
    )
    follows_acls: bool = variable("ACLS_SYNC", yes_or_no, "no").purpose(
        "Let the readers of a source topic read its copy, as the source's ACLs change: yes or no."
    )

    @property
    def shared(self) -> bool:
        """True if others than this link may write to its copies."""
        return self.fan_in or self.naming is TopicNaming.IDENTICAL

    @property
    def naming_faults(self) -> list[str]:
        """Settings that one way of naming copies requires, or cannot have."""
        faults, naming = [], f"REPLICA_TOPICS_NAMING={self.naming}"
        if self.naming is TopicNaming.EXACT:
            if not self.name:
                faults.append(f"REPLICA_TOPICS_DEST_NAME: missing: the copy's name, because of {naming}")
            try:
                topic_name(self.regex)
            except ValueError as error:
                faults.append(f"REPLICA_TOPICS_SOURCE_REGEX={self.regex}: {error} ({naming})")
        if self.naming is TopicNaming.MAP and not self.pairs:
            faults.append(f"REPLICA_TOPICS_NAMES: missing: the topics and their copies, because of {naming}")
        if self.pairs and self.naming is not TopicNaming.MAP:
            faults.append(f"REPLICA_TOPICS_NAMES: expected REPLICA_TOPICS_NAMING=map with it, not {self.naming}")
        if self.shared and self.follows_acls:
            because = "REPLICA_FAN_IN=yes" if self.fan_in else naming
            faults.append(
                f"ACLS_SYNC=yes: expected no with {because}: the readers of one source would read all of a copy"
            )
        return faults

    @property
    def compacts_new_copies(self) -> bool:
        """True if copies are compacted like their sources from the start, whatever happens there later."""
        return not (self.shared or self.follows_configs)

    @property
    def syncs_configs(self) -> bool:
        """True if copies get what changes at their sources; shared ones would be changed by each link in turn."""
        return self.follows_configs and not self.shared

    def configs_to_follow(self, set_at_source: Mapping[str, str]) -> dict[str, str]:
        """Those of a source topic's settings that its copy gets."""
        excluded = re.compile(self.configs_exclude_regex or "(?!)")
        return {key: value for key, value in set_at_source.items() if not excluded.fullmatch(key)}


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The groups whose offsets are translated and committed at the destination; times in seconds.

    ``regex`` and ``exclude_regex`` match whole names; "" matches no group.
    """

    regex: str = variable("REPLICA_GROUPS_REGEX", regexes).purpose(
        "Groups whose offsets follow: regular expressions for whole names, comma separated; empty: none."
    )
    exclude_regex: str = variable("REPLICA_GROUPS_EXCLUDE_REGEX", regexes, _GROUPS_OF_TOOLS).purpose(
        "Groups to leave out, though they match: regular expressions, comma separated."
    )
    sync_seconds: float = variable("GROUPS_SYNC_SECONDS", seconds(0.1, 3600), "5").purpose(
        "Time between two looks at the offsets of groups."
    )

    @property
    def wanted(self) -> bool:
        """True when any group is to follow."""
        return bool(self.regex)

    def takes(self, group: str) -> bool:
        """True when the offsets of a group of that name are to follow."""
        return bool(
            self.regex and re.fullmatch(self.regex, group) and not re.fullmatch(self.exclude_regex or "(?!)", group)
        )
