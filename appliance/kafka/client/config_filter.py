"""Topics made and configured with what a cluster takes: what it does not know, or its policy refuses, is left out."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kio.schema.errors import ErrorCode

from appliance.errors import ApplianceError, BrokerRefused
from appliance.kafka.client.configs import LEAST_IN_SYNC, alter_configs, try_describe
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.topics import CreationOutcome, NewTopic, create_topics

_ABOUT_SETTINGS = ("INVALID_CONFIG", "POLICY_VIOLATION")
_LOOKED_AT = 1_000
"""Most topics asked for their settings until one shows the settings that exist."""

_REPLICAS_AND_IN_SYNC = 3, "2"
_BY_DEFAULT = -1

Value = TypeVar("Value", str, str | None)

Change = Mapping[str, str | None]
"""Settings to set on a topic; None unsets one."""

Refusal = Callable[[Collection[str]], Awaitable[str]]
"""Asks a cluster to accept settings together; the reason of its refusal, or nothing."""


async def search(
    wanted: Collection[str], required: Collection[str], refusal: Refusal
) -> tuple[list[str], dict[str, str]]:
    """Find the settings that are accepted, and the reasons of the others.

    A policy of the brokers (KIP-108), like their own check of values, refuses a topic as a whole, with a text for
    people. When all settings together were refused and the required ones were not, the others are tried one by one,
    each with the settings accepted before.
    """
    accepted = [key for key in wanted if key in required]
    refused = {}
    for key in wanted:
        if key in required:
            continue
        if reason := await refusal([*accepted, key]):
            refused[key] = reason
        else:
            accepted.append(key)
    return accepted, refused


@dataclass(slots=True)
class FittedTopics:
    """The outcome of making topics.

    ``topics`` were made (or can be) as they stand here, ``there`` are those that exist already, ``failures`` are the
    errors of others, by name; ``left_out`` are the reasons of missing settings, by topic and setting.
    """

    topics: list[NewTopic] = field(default_factory=list)
    there: set[str] = field(default_factory=set)
    failures: dict[str, ApplianceError] = field(default_factory=dict)
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class FittedChanges:
    """The outcome of changes: those ``made``, the errors, and by topic and setting the reason that it was left out."""

    made: dict[str, Change] = field(default_factory=dict)
    failures: dict[str, ApplianceError] = field(default_factory=dict)
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)


class ConfigFilter:
    """Makes and configures topics of one cluster. Settings that it has refused once are not requested again.

    Args:
        first: the first topic to ask for the settings that the cluster knows.
        tries: only have the cluster check changes.
    """

    def __init__(self, cluster: Cluster, first: str = "", *, tries: bool = False) -> None:
        self._cluster = cluster
        self._first = first
        self._tries = tries
        self._known: frozenset[str] | None = None
        self._replicas_by_default: int | None = None
        self._refused: dict[tuple[str, str | None], str] = {}

    async def known_settings(self) -> frozenset[str] | None:
        """The settings that the cluster knows and allows to set; None as long as no topic may be described."""
        if self._known is None:
            there = (await self._cluster.metadata(None)).topics.values()
            names = sorted((topic.name for topic in there if topic.error is ErrorCode.none), key=self._order)
            for settings in (await try_describe(self._cluster, names[:_LOOKED_AT]))[0].values():
                if settings:
                    self._known = frozenset(key for key, setting in settings.items() if not setting.read_only)
                    break
        return self._known

    def _order(self, name: str) -> tuple[bool, str]:
        return name != self._first, name

    async def make(self, topics: Sequence[NewTopic]) -> FittedTopics:
        """Make the topics with their accepted settings."""
        fitted = await self.fit(topics)
        created = await create_topics(self._cluster, fitted.topics)
        fitted.topics = [topic for topic in fitted.topics if topic.name in created.made]
        fitted.there |= created.there
        fitted.failures |= created.failures
        return fitted

    async def fit(self, topics: Sequence[NewTopic]) -> FittedTopics:
        """Ask the cluster for the result of ``make``, without making anything."""
        result = FittedTopics()
        wanted = {topic.name: topic for topic in await self._kept_in_sync(topics)}
        waiting = list(wanted.values())
        while waiting:
            asked = [_with(topic, self._not_refused(topic.configs)) for topic in waiting]
            refused = await self._ask(asked, result)
            waiting = await self._without_the_hopeless([topic for topic in asked if topic.name in refused], result)
            if waiting:
                # The settings refused for the first one are left out of all the others before they are tried again.
                first = waiting.pop(0)
                result.topics.append(await self._search(first))
        result.failures = {name: result.failures[name] for name in wanted if name in result.failures}
        for topic in result.topics:
            if left_out := self._left_out(wanted[topic.name].configs, topic.configs):
                result.left_out[topic.name] = left_out
        return result

    async def _ask(self, topics: Sequence[NewTopic], result: FittedTopics) -> dict[str, BrokerRefused]:
        """Ask for topics as they are, note the outcome, and return those with refused settings."""
        answer = await create_topics(self._cluster, topics, validate_only=True) if topics else CreationOutcome()
        result.topics += [topic for topic in topics if topic.name in answer.made]
        result.there |= answer.there
        refused = _about_settings(answer.failures)
        result.failures |= {name: error for name, error in answer.failures.items() if name not in refused}
        return refused

    async def _without_the_hopeless(self, topics: Sequence[NewTopic], result: FittedTopics) -> list[NewTopic]:
        """The topics that are accepted with their required settings alone; notes the errors of the others."""
        required = {topic.name: _with(topic, topic.required) for topic in topics}
        refused = await self._ask(list(required.values()), alone := FittedTopics())
        result.there |= alone.there
        result.failures |= alone.failures | {name: _hopeless(required[name], error) for name, error in refused.items()}
        accepted = {topic.name for topic in alone.topics}
        return [topic for topic in topics if topic.name in accepted]

    async def _search(self, topic: NewTopic) -> NewTopic:
        """The topic with its accepted settings; the others are remembered."""

        async def refusal(keys: Collection[str]) -> str:
            created = await create_topics(self._cluster, [_with(topic, keys)], validate_only=True)
            return _words(created.failures.get(topic.name))

        return _with(topic, await self._settle(topic.configs, topic.required, refusal))

    async def _settle(self, wanted: Change, required: Collection[str], refusal: Refusal) -> Collection[str]:
        """The accepted settings; the refusals of the others are remembered."""
        accepted, refused = await search(wanted, required, refusal)
        self._refused |= {(key, wanted[key]): words for key, words in refused.items()}
        return accepted

    async def change(self, changes: Mapping[str, Change]) -> FittedChanges:
        """Change the settings of topics, as far as the cluster accepts them."""
        changed = FittedChanges()
        waiting = dict(changes)
        while waiting:
            asked = {name: rest for name, change in waiting.items() if (rest := self._not_refused(change))}
            refused = await self._alter(asked, changed)
            waiting = {name: asked[name] for name in refused}
            if waiting:
                name, change = waiting.popitem()
                accepted = await self._search_change(name, change)
                changed.failures |= await self._alter({name: accepted} if accepted else {}, changed)
        for name, change in changes.items():
            if left_out := self._left_out(change, changed.made.get(name, {})):
                changed.left_out[name] = left_out
        return changed

    async def _alter(self, changes: Mapping[str, Change], changed: FittedChanges) -> dict[str, BrokerRefused]:
        """Change topics, note the outcome, and return those with refused settings."""
        failures = await alter_configs(self._cluster, changes, self._tries) if changes else {}
        changed.made |= {name: change for name, change in changes.items() if name not in failures}
        refused = _about_settings(failures)
        changed.failures |= {name: error for name, error in failures.items() if name not in refused}
        return refused

    async def _search_change(self, name: str, change: Change) -> Change:
        async def refusal(keys: Collection[str]) -> str:
            asked = {name: {key: change[key] for key in keys}}
            return _words((await alter_configs(self._cluster, asked, validate_only=True)).get(name))

        return {key: change[key] for key in await self._settle(change, (), refusal)}

    async def _kept_in_sync(self, topics: Sequence[NewTopic]) -> list[NewTopic]:
        """The topics; those with three replicas need two in sync: the loss of one broker loses nothing."""
        if self._known is not None and LEAST_IN_SYNC not in self._known:
            return list(topics)
        replicas, in_sync = _REPLICAS_AND_IN_SYNC
        by_default = await self._default(topics)
        return [
            replace(topic, configs={**topic.configs, LEAST_IN_SYNC: in_sync})
            if replicas == (by_default if topic.replication_factor == _BY_DEFAULT else topic.replication_factor)
            else topic
            for topic in topics
        ]

    async def _default(self, topics: Sequence[NewTopic]) -> int:
        """The cluster's own replication factor, from its answer for the first topic that requests it; -1 is unknown."""
        asking = [_with(topic, ()) for topic in topics if topic.replication_factor == _BY_DEFAULT][:1]
        if asking and self._replicas_by_default is None:
            answer = await create_topics(self._cluster, asking, validate_only=True)
            self._replicas_by_default = answer.made.get(asking[0].name)
        return self._replicas_by_default or _BY_DEFAULT

    def _not_refused(self, wanted: Mapping[str, Value]) -> dict[str, Value]:
        return {key: value for key, value in wanted.items() if (key, value) not in self._refused}

    def _left_out(self, wanted: Change, kept: Change) -> dict[str, str]:
        refused = {key: self._refused.get((key, value)) for key, value in wanted.items() if key not in kept}
        return {key: why for key, why in refused.items() if why}


def _with(topic: NewTopic, keys: Iterable[str]) -> NewTopic:
    """The topic with these of its settings."""
    chosen = set(keys)
    return replace(topic, configs={key: value for key, value in topic.configs.items() if key in chosen})


def _about_settings(failures: Mapping[str, ApplianceError]) -> dict[str, BrokerRefused]:
    return {
        name: error
        for name, error in failures.items()
        if isinstance(error, BrokerRefused) and error.code in _ABOUT_SETTINGS
    }


def _words(error: ApplianceError | None) -> str:
    """The cluster's refusals of settings; empty if it accepted them.

    Raises:
        ApplianceError: it refused for another reason.
    """
    if error is None:
        return ""
    if isinstance(error, BrokerRefused) and error.code in _ABOUT_SETTINGS:
        return error.words
    raise error


def _hopeless(topic: NewTopic, error: BrokerRefused) -> BrokerRefused:
    """The error for a topic that cannot be made, with the remedy."""
    if not topic.configs:
        return error
    has_to = ", ".join(f"{key}={value}" for key, value in topic.configs.items())
    remedy = f"it has to have {has_to}: have the policy of the cluster allow it, or make it by hand so"
    return BrokerRefused(f"{error}: {remedy}", error.code, error.words)
