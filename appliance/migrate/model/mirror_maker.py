"""The settings of MirrorMaker 2 in dedicated mode, as links: one for each enabled direction.

A key counts where MirrorMaker counts it:

::

    A->B.topics, else topics                                    a key of the connectors
    A->B.source.consumer.K, A->B.consumer.K, A.consumer.K,      a key of a client of the source cluster A
        A->B.source.cluster.K, A.K, K
    A->B.target.producer.K, A->B.producer.K, B.producer.K,      a key of a client of the destination cluster B
        A->B.target.cluster.K, B.K, K
    A->B.source.cluster.alias, A.alias, source.cluster.alias    the name with which copies begin, else A; so B's

A direction is enabled by ``A->B.enabled`` alone. With heartbeats, which are on by default, MirrorMaker also runs for
the others, but copies nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from appliance.errors import SettingsError
from appliance.migrate.model.clients import CONSUMER, PRODUCER, client_rules, left_of_a_client
from appliance.migrate.model.link import ImportedLink, LinkBuilder
from appliance.migrate.model.mirror_maker_keys import (
    ACLS,
    CONNECTOR,
    DEFAULTS,
    GROUPS,
    INTERNAL_NOTE,
    NAMES,
    NEVER_COPIED,
    OLD_NAMES,
    WORKER,
)
from appliance.migrate.model.verdict import Ledger, Outcome, Rule, Translation, Verdict, by_value, carried, left
from appliance.settings.role import Side
from appliance.settings.values import TopicNaming

CLUSTERS = "clusters"
_NO_GROUPS = "offsets of groups were neither synced nor told in checkpoints"
_OWN_READERS = "where topics have the same name on both sides, each side has readers of its own"
_CLIENTS = ("consumer", "producer", "admin")
_LATEST = "MirrorMaker before Kafka 3.6.2 ignored latest, and copied from the first record on (KAFKA-13988)"
_FROM = "auto.offset.reset"
_CONSUMER = {**CONSUMER, _FROM: by_value({"latest": carried("REPLICA_TOPICS_START", note=_LATEST)}, CONSUMER[_FROM])}


@dataclass(frozen=True, slots=True)
class _Direction:
    """A pair of clusters; ``prefix`` begins its own keys."""

    source: str
    target: str

    @property
    def prefix(self) -> str:
        return f"{self.source}->{self.target}."


def mirror_maker_links(name: str, values: Mapping[str, str]) -> tuple[tuple[ImportedLink, ...], tuple[Outcome, ...]]:
    """The links, and the outcome for each key of the file ``name``."""
    clusters = [cluster for cluster in re.split(r"\s*,\s*", values.get(CLUSTERS, "").strip()) if cluster]
    if not clusters:
        raise SettingsError([f"{name}: clusters: missing: expected clusters = A, B, or a MirrorSourceConnector"])
    directions = [_Direction(*pair) for pair in permutations(dict.fromkeys(clusters), 2)]
    enabled = [direction for direction in directions if _is_true(values.get(f"{direction.prefix}enabled", ""))]
    if not enabled:
        raise SettingsError([f"{name}: no direction is enabled: expected A->B.enabled = true for two of its clusters"])
    ledger = Ledger()
    links = tuple(_Reading(values, ledger, direction).link() for direction in enabled)
    return links, ledger.outcomes(values, _Unused(clusters, directions, enabled).outcome)


def _is_true(value: str) -> bool:
    return value.strip().lower() == "true"


class _Reading:
    """One pass over the file, for one direction."""

    def __init__(self, values: Mapping[str, str], ledger: Ledger, direction: _Direction) -> None:
        self._values = values
        self._ledger = ledger
        self._direction = direction
        self._link = LinkBuilder(direction.source, direction.target)

    def link(self) -> ImportedLink:
        """The link of this direction."""
        folder = Translation(Verdict.CARRIED, f"the folder {self._link.built().folder}")
        self._ledger.note(f"{self._direction.prefix}enabled", folder)
        self._ledger.note(CLUSTERS, Translation(Verdict.CARRIED, "the links' clusters"))
        self._client(Side.SOURCE, self._direction.source, "source", "consumer", _CONSUMER)
        self._client(Side.DESTINATION, self._direction.target, "target", "producer", PRODUCER)
        for key, rule in CONNECTOR.items():
            self._apply(key, self._of_this_link(key, rule), self._connector_keys(key), DEFAULTS.get(key))
        internal = carried("REPLICA_TOPICS_INTERNAL_REGEX", note=INTERNAL_NOTE)
        self._ledger.note_default("internal topics", self._link.apply(internal, NEVER_COPIED))
        return self._link.built()

    def _of_this_link(self, key: str, rule: Rule) -> Rule:
        """The rule for a key, which may depend on other keys."""
        if key in GROUPS and not self._any_true("sync.group.offsets.enabled", "emit.checkpoints.enabled"):
            return left(_NO_GROUPS)
        identical = self._link.built().variables.get("REPLICA_TOPICS_NAMING") == TopicNaming.IDENTICAL
        if key == ACLS and identical:
            return left(_OWN_READERS)
        return (lambda value: replace(rule(value), withheld=())) if key in NAMES and identical else rule

    def _client(self, side: Side, alias: str, end: str, role: str, of_role: Mapping[str, Rule]) -> None:
        """Apply the rules for the clients of one cluster; the ``role`` of the client decides which keys count."""
        pair = self._direction.prefix
        own = (f"{pair}{end}.{role}.", f"{pair}{role}.", f"{alias}.{role}.")
        every = (*own, f"{pair}{end}.cluster.", f"{alias}.", "")

        def type_of(store: str) -> str:
            types = (self._values.get(f"{prefix}ssl.{store}.type") for prefix in every)
            return next(filter(None, types), "")

        for key, rule in client_rules(side, type_of).items():
            default = "PLAINTEXT" if key == "security.protocol" else None
            self._apply(key, rule, [prefix + key for prefix in every], default)
        for key, rule in of_role.items():
            self._apply(key, rule, [prefix + key for prefix in own])

    def _connector_keys(self, key: str) -> list[str]:
        """The keys of the file for a key of the connectors, the most important first; old names count last."""
        names = [key, *(old for old, new in OLD_NAMES.items() if new == key)]
        keys = [prefix + name for name in names for prefix in (self._direction.prefix, "")]
        ends = {"source.cluster.alias": self._direction.source, "target.cluster.alias": self._direction.target}
        return [keys[0], f"{ends[key]}.alias", *keys[1:]] if key in ends else keys

    def _any_true(self, *keys: str) -> bool:
        names = (next((k for k in self._connector_keys(key) if k in self._values), None) for key in keys)
        pairs = zip(keys, names, strict=True)
        return any(_is_true(DEFAULTS.get(key, "") if name is None else self._values[name]) for key, name in pairs)

    def _apply(self, name: str, rule: Rule, keys: Sequence[str], default: str | None = None) -> None:
        """Apply a rule to the first of these keys in the file, else to the default of the one that is called so."""
        present = [key for key in keys if key in self._values]
        if not present and default is not None:
            self._ledger.note_default(name, self._link.apply(rule, default))
        for key in present[:1]:
            translation = self._link.apply(rule, self._values[key])
            self._ledger.note(key, replace(translation, reason=translation.reason or _by_its_name(key)))
        for key in present[1:]:
            self._ledger.note(key, Translation(Verdict.LEFT, f"{present[0]} takes precedence"))


def _by_its_name(key: str) -> str:
    """A word on a name that MirrorMaker may not have read."""
    return "Kafka 4 no longer reads this name" if key.endswith(tuple(OLD_NAMES)) else ""


@dataclass(frozen=True, slots=True)
class _Unused:
    """The reasons for keys that no enabled direction uses."""

    clusters: Sequence[str]
    directions: Sequence[_Direction]
    enabled: Sequence[_Direction]

    def outcome(self, key: str) -> Translation:
        """The outcome for a key that no rule was applied to."""
        if "->" in key:
            return self._of_a_direction(key)
        owner = max((cluster for cluster in self.clusters if key.startswith(f"{cluster}.")), key=len, default=None)
        if owner is None:
            return _left_over(key)
        ends = {end for direction in self.enabled for end in (direction.source, direction.target)}
        if owner not in ends:
            return Translation(Verdict.LEFT, f"no enabled direction has the cluster {owner}")
        return _left_over(key.removeprefix(f"{owner}."), of_a_client=True)

    def _of_a_direction(self, key: str) -> Translation:
        direction = next((one for one in self.directions if key.startswith(one.prefix)), None)
        if direction is None:
            return Translation(Verdict.LEFT, "no two of the clusters have this direction")
        if direction not in self.enabled:
            return Translation(Verdict.LEFT, f"{direction.prefix}enabled is not true: no records are copied in it")
        return _left_over(key.removeprefix(direction.prefix))


def _left_over(key: str, *, of_a_client: bool = False) -> Translation:
    """The outcome for a key without the names of clusters before it."""
    without_end = re.sub(r"^(source|target)\.(cluster\.)?", "", key)
    role, _, rest = without_end.partition(".")
    if role in _CLIENTS and rest:
        return left_of_a_client(rest, role)
    reason = next((reason for beginning, reason in WORKER.items() if key.startswith(beginning)), None)
    if reason is not None:
        return Translation(Verdict.LEFT, reason)
    if of_a_client or without_end != key or key.startswith(("ssl.", "sasl.")):
        return left_of_a_client(without_end, "client")
    return Translation(Verdict.LEFT, "not known as a key of MirrorMaker 2")


_COPIES = "MirrorSourceConnector"
_CLASS = "connector.class"
_OTHERS = {"emit.heartbeats.enabled": "false", "emit.checkpoints.enabled": "false"}
"""Heartbeats and checkpoints are the work of other connectors."""


def links_of_either(name: str, values: Mapping[str, str]) -> tuple[tuple[ImportedLink, ...], tuple[Outcome, ...]]:
    """The links, and the outcome for each key of the file ``name``, of a connector or of dedicated mode."""
    if CLUSTERS in values or not {_CLASS, "source.cluster.alias"} & values.keys():
        return mirror_maker_links(name, values)
    if (kind := values.get(_CLASS, _COPIES).strip()).rpartition(".")[2] != _COPIES:
        raise SettingsError([f"{name}: {_CLASS}={kind}: expected the connector that copies records, {_COPIES}"])
    source, target = (values.get(f"{end}.cluster.alias", "").strip() or end for end in ("source", "target"))
    before = f"{source}->{target}."
    added = {CLUSTERS: f"{source}, {target}", f"{before}enabled": "true", **_OTHERS}
    prefixed = {before + key: value for key, value in values.items()}
    links, outcomes = mirror_maker_links(name, added | prefixed)
    used = [outcome for outcome in outcomes if outcome.key in prefixed or outcome.key not in added]
    return links, tuple(replace(outcome, key=outcome.key.removeprefix(before)) for outcome in used)
