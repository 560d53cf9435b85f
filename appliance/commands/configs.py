"""``appliance configs``: the settings that the replicator would change next on copies. It changes nothing."""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence

from appliance.driver.config_follower import ConfigDiff, ConfigFollower
from appliance.kafka.client.configs import set_on, try_describe
from appliance.link.handle import Copies, Link
from appliance.link.model.topic_choice import add_topic_options, among
from appliance.output import say, say_json
from appliance.runtime.command import Command, add_json, until_stopped, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings

Held = Mapping[str, Mapping[str, str]]
"""The settings that copies have, by copy."""


def topic_options(command: argparse.ArgumentParser) -> None:
    """The options of a command about copies."""
    add_topic_options(command)
    add_json(command)


def chosen_topics(parsed: argparse.Namespace, copies: Copies) -> set[str]:
    """The source topics that a command is about; a SettingsError where its expression is invalid or matches none."""
    return set(among(parsed.topic, copies.topics | copies.active.inactive.keys()))


async def _configs(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Print the changes; 1 when those of some topic are unknown."""
    async with Link.open(settings) as link:
        follower = ConfigFollower(link, settings.topics)
        copies = await link.copies()
        chosen = chosen_topics(parsed, copies)
        active, others = copies.active, copies.others
        topics = {r.source_topic: r.destination_topic for r in active.replicas if r.source_topic in chosen}
        unchanged = {name: f"its copy is {state}" for name, state in active.inactive.items() if name in chosen}
        unchanged |= {
            name: f"its copy belongs to {others[copy].link}" for name, copy in topics.items() if copy in others
        }
        diff = await follower.diff(sorted(topics.keys() - unchanged.keys()), active.replicas)
        diff.unchanged = unchanged
        if settings.topics.syncs_configs:
            await follower.try_changes(diff)
        described, _unseen = await try_describe(link.destination, list(diff.changes))
    current = {copy: set_on(configs) for copy, configs in described.items()}
    if parsed.json:
        say_json(json.dumps(as_document(diff, current, follows=settings.topics.syncs_configs)))
    else:
        why_not = "a shared copy keeps its own settings" if link.naming.sharing.others_write else "CONFIGS_SYNC=no"
        say(*as_lines(diff, current, "" if settings.topics.syncs_configs else why_not))
    return 1 if diff.failures else 0


def as_document(diff: ConfigDiff, current: Held, *, follows: bool) -> dict[str, object]:
    """The differences as JSON's values; ``then`` is null where the setting would be unset."""
    changes = {
        copy: {key: {"now": current.get(copy, {}).get(key), "then": value} for key, value in sorted(change.items())}
        for copy, change in diff.changes.items()
    }
    failures = {name: str(error) for name, error in diff.failures.items()}
    left_out = {name: causes for name, causes in diff.left_out.items() if causes}
    unchanged = {"unchanged": dict(diff.unchanged)} if diff.unchanged else {}
    return {"follows": follows, "changes": changes, "left_out": left_out, "failures": failures, **unchanged}


def as_lines(diff: ConfigDiff, current: Held, why_not: str = "") -> Sequence[str]:
    """The differences, a line for each setting; ``why_not`` is the reason that nothing is changed."""
    lines = [f"{why_not}: none of this is changed"] if why_not else []
    for copy, change in diff.changes.items():
        for key, value in sorted(change.items()):
            lines.append(f"{copy}: {key} {current.get(copy, {}).get(key) or 'by default'} -> {value or 'by default'}")
    for name, causes in diff.left_out.items():
        lines += [f"{name}: {key} does not follow: {why}" for key, why in sorted(causes.items())]
    lines += [f"{name}: nothing is changed: {why}" for name, why in diff.unchanged.items()]
    lines += [f"{name}: {error}" for name, error in diff.failures.items()]
    return lines or ["every copy has its source topic's settings"]


CONFIGS = Command(
    "Shows the settings that copies do not have as their source topics do, and that the replicator would set. "
    "It changes nothing. CONFIGS_SYNC and CONFIGS_EXCLUDE_REGEX say what follows.",
    until_stopped(with_settings(Role.REPLICATOR, _configs)),
    topic_options,
)
