"""The settings of copies, kept like those of their source topics."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from appliance.errors import ApplianceError
from appliance.kafka.client.config_filter import Change, ConfigFilter
from appliance.kafka.client.configs import set_on, try_describe
from appliance.kafka.client.interface import Cluster
from appliance.link.model.naming import Naming
from appliance.link.model.topic_configs import config_changes, copied_configs, unknown
from appliance.settings.values import TopicSettings

log = logging.getLogger("appliance.replicator")

StillActive = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Asks for the topics whose copies the link may change now."""


@dataclass(slots=True)
class ConfigLook:
    """The settings to change, by copy; unavailable settings with their reasons, and errors, both by source topic."""

    changes: dict[str, Change] = field(default_factory=dict)
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    failures: dict[str, ApplianceError] = field(default_factory=dict)


@dataclass(slots=True)
class ConfigFollower:
    """Applies the settings of source topics to their copies, and unsets those that were unset since the last look."""

    source: Cluster
    destination: Cluster
    naming: Naming
    topics: TopicSettings
    filter: ConfigFilter
    _followed: dict[str, dict[str, str]] = field(default_factory=dict)
    _not_followed: dict[str, str] = field(default_factory=dict)

    async def look(self, topics: Sequence[str]) -> ConfigLook:
        """Compare the copies of these source topics with them, and change nothing.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused: as everywhere.
        """
        copies = {name: self.naming.destination(name) for name in topics}
        at_source, undescribed = await try_describe(self.source, topics)
        on_copies, unseen = await try_describe(self.destination, list(copies.values()))
        found = ConfigLook()
        for name, copy in copies.items():
            if name in at_source and on_copies.get(copy):
                set_at_source = self.topics.configs_to_follow(set_on(at_source[name]))
                known = {key for key, setting in on_copies[copy].items() if not setting.read_only}
                wanted, held = copied_configs(set_at_source, known), set_on(on_copies[copy])
                if change := config_changes(wanted, held, self._followed.get(name, {})):
                    found.changes[copy] = change
                self._followed[name] = wanted
                found.left_out[name] = unknown(set_at_source, known)
            elif error := unseen.get(copy) or undescribed.get(name):
                found.failures[name] = error
        return found

    async def follow(self, topics: Sequence[str], still_active: StillActive) -> Mapping[str, Mapping[str, str]]:
        """Update the copies of these source topics, unless CONFIGS_SYNC=no; unavailable settings, with their reasons.

        Changes only copies that are ``still_active`` once the changes are known.

        Raises:
            Unreachable, BrokerBusy, BrokerRefused: as everywhere.
        """
        if not topics or not self.topics.follows_configs:
            return {}
        found = await self.look(topics)
        if found.changes:
            copies = {self.naming.destination(name) for name in await still_active(topics)}
            found.changes = {copy: change for copy, change in found.changes.items() if copy in copies}
        changed = await self.filter.change(found.changes)
        for name in topics:
            copy = self.naming.destination(name)
            if copy in changed.made:
                fields = {"topic": copy, "changed": sorted(changed.made[copy])}
                log.info("configuration followed", extra={"fields": fields})
            self._tell(name, changed.failures.get(copy) or found.failures.get(name))
            if name in found.left_out:
                found.left_out[name] |= changed.left_out.get(copy, {})
        return found.left_out

    def _tell(self, name: str, error: ApplianceError | None) -> None:
        if error and str(error) != self._not_followed.get(name):
            log.warning("configuration not followed", extra={"fields": {"cause": str(error)}})
        self._not_followed[name] = str(error or "")
