"""``appliance acls``: the ACLs that the replicator would make next on copies or remove. It changes nothing."""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence

from appliance.commands.configs import chosen_topics, topic_options
from appliance.driver.acl_follower import AclDiff, AclFollower, left_out, why_left_out
from appliance.kafka.client.client_tls import user_of
from appliance.link.handle import Link
from appliance.link.model.copied_acls import Entries, principal_of
from appliance.output import say, say_json
from appliance.runtime.command import Command, until_stopped, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


async def _acls(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Print the changes."""
    async with Link.open(settings) as link:
        copies = await link.copies()
        chosen = chosen_topics(parsed, copies)
        own = {r.source_topic: r.destination_topic for r in copies.active.replicas}
        own = {topic: copy for topic, copy in own.items() if copy not in copies.others and topic in chosen}
        principal = principal_of(user_of(settings.destination))
        follower = AclFollower(link, principal)
        diff = await follower.diff(own)
    if parsed.json:
        say_json(json.dumps(as_document(diff, follows=settings.topics.follows_acls)))
    else:
        say(*as_lines(diff, follows=settings.topics.follows_acls))
    return 0


def as_document(diff: AclDiff, *, follows: bool) -> dict[str, object]:
    """The differences as JSON's values."""
    denials = {str(entry): topics for entry, topics in sorted(left_out(diff.copied).items())}
    changes = {"make": _texts(diff.changes.made), "remove": _texts(diff.changes.removed)}
    return {"follows": follows, **changes, "left_out": denials}


def _texts(changes: Mapping[str, Entries]) -> dict[str, list[str]]:
    return {copy: [str(entry) for entry in sorted(entries)] for copy, entries in sorted(changes.items())}


def as_lines(diff: AclDiff, *, follows: bool) -> Sequence[str]:
    """The differences, a line for each ACL."""
    lines = [] if follows else ["ACLS_SYNC=no: none of this is changed"]
    for doing, changes in (("make", diff.changes.made), ("remove", diff.changes.removed)):
        lines += [f"{copy}: {doing} {text}" for copy, texts in _texts(changes).items() for text in texts]
    lines += [why_left_out(entry, topics) for entry, topics in sorted(left_out(diff.copied).items())]
    return lines or ["every copy has the ACLs for its readers"]


ACLS = Command(
    "Shows the ACLs that copies lack for the readers of their source topics, and those that the link made before and "
    "whose like is gone at the source. It changes nothing; with ACLS_SYNC=yes the replicator does.",
    until_stopped(with_settings(Role.REPLICATOR, _acls)),
    topic_options,
)
