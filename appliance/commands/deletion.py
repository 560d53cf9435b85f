"""Deleting a link: only its copies stay, and a record of the deletion.

1. A running replicator is refused: it takes back a lane on which the operator has left a name.
2. ``deleted`` in every lane. A process that wakes up later cannot write, and makes and claims nothing.
3. The copies are deleted, if requested, and only while they are still this link's.
4. The registry gets the record that the link was deleted, and loses the link's claims, in one transaction. A
   replicator that starts later finds that record, and ends; `appliance resume --adopt-positions` takes it back.
5. The link's own topics are deleted, the positions last.

After a kill anywhere, the same command continues, even when the positions are gone.
"""

import argparse
import asyncio
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from appliance.clock import now_ms
from appliance.commands.model.removal_report import DeletionReport, GivenUpCopy
from appliance.commands.removal import LETTERS, GivingUp
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import add_terms, run_with
from appliance.errors import ApplianceError, LinkRefused
from appliance.groups.group_places import withdraw_places
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.topics import delete_topics
from appliance.link.client.registry import Registry
from appliance.link.model.checkpoint import OPERATOR
from appliance.link.model.claims import Claim, given_up
from appliance.link.model.copy_states import LINK, CopyEvent, CopyState, change, effective
from appliance.link.model.naming import HEARTBEATS, Naming
from appliance.runtime.command import Command

TAKEN_BACK_SECONDS = 8.0
"""Time in which a running replicator finds the operator's name on a lane and takes it back, in seconds."""

_SOURCE_SECONDS = 5.0
_PAUSE = 0.2


async def delete_link(operation: Operation, *, delete_copies: bool = False) -> DeletionReport:
    """Delete the link.

    Raises:
        LinkRefused: there is none, a replicator runs, or a topic is between two states.
        SettingsError: there is no terminal to ask for consent.
        ApplianceError: a cluster does not answer, or refuses; the next run continues.
    """
    registry = Registry(operation.destination, operation.naming.replicator)
    await registry.refresh()
    there = await operation.destination.metadata(None)
    has_positions = operation.naming.positions_topic in there.topics
    if has_positions or not registry.deletion:
        await operation.link.read()
        _require_settled(operation)
    giving_up = GivingUp(operation, registry, there, delete_copies)
    claimed = _copies(operation, registry)
    copies = _kept_if_promoted(giving_up.copies(claimed))
    own = _own_topics(operation.naming)
    topics = {name: there.topics[name].id for name in own if name in there.topics}
    source_topics = await _source_topics(operation)
    told = None if source_topics is None else tuple(source_topics)
    report = DeletionReport(registry.link, operation.choice.dry_run, tuple(topics), told, copies)
    if operation.choice.dry_run:
        return report
    if not registry.deletion or any(each.deleted for each in copies):
        for line in replace(report, dry_run=True).lines():
            operation.tell(line)
        deleted = sum(each.deleted for each in copies)
        what = f"{len(topics)} topics of its own and {deleted} copies are deleted, {len(copies) - deleted} copies stay"
        await operation.consent(f"delete the link {registry.link}: {what}")
    if has_positions:
        await _fence(operation)
        copies = _kept_if_promoted(await giving_up.copies_now(claimed))
    await giving_up.delete(copies)
    stamp = operation.link.stamp
    await registry.give_up((), Claim(registry.link, now_ms(), deleted_by=stamp.by, why=stamp.why))
    if operation.naming.shared:
        await withdraw_places(operation.destination, operation.naming)
    await delete_topics(operation.source, source_topics or {})
    positions = topics.pop(operation.naming.positions_topic, None)
    await delete_topics(operation.destination, topics)
    if positions is not None:
        await delete_topics(operation.destination, {operation.naming.positions_topic: positions})
    return replace(report, copies=copies)


def _require_settled(operation: Operation) -> None:
    link = operation.link
    for topic, state in change(link.states, None, CopyEvent.DELETE, link.stamp).kept.items():
        raise LinkRefused(f"{topic or 'the link'} is {state}: end that first")


def _copies(operation: Operation, registry: Registry) -> list[tuple[str, str]]:
    """The source topics of this link's copies, empty if unknown, and the copies."""
    link, naming = operation.link, operation.naming
    topics = {topic for topic, _ in link.positions} | (link.states.keys() if link.checkpoints else set())
    sources = {naming.destination(topic): topic for topic in topics - {LINK}}
    claims = registry.claims.items()
    claimed = sorted({copy[0] for copy, claim in claims if claim.link == registry.link and copy != given_up(copy[0])})
    return [(sources.get(copy, LINK), copy) for copy in claimed if copy != naming.positions_topic]


def _kept_if_promoted(copies: Iterable[GivenUpCopy]) -> tuple[GivenUpCopy, ...]:
    """Keep promoted copies in any case: their records may exist nowhere else."""
    return tuple(replace(each, deleted=False, dead_letters_deleted=False) if each.promoted else each for each in copies)


def _own_topics(naming: Naming) -> list[str]:
    """The link's own topics at the destination, the positions last.

    Of a copy that others write too the commits of the groups' sync stay known: others may have to set them back.
    """
    mirror = [name for name in naming.mirror_topics if name != HEARTBEATS]  # all links share that one
    places = [] if naming.shared else [naming.groups_topic]
    return [*mirror, *places, naming.offsets_topic, naming.positions_topic]


async def _source_topics(operation: Operation) -> Mapping[str, uuid.UUID] | None:
    """The topics of failbacks at the source; None while it does not answer."""
    names = operation.naming.failback
    try:
        async with asyncio.timeout(_SOURCE_SECONDS):
            offsets = await _there(operation.source, names.offsets_topic)
            return {**offsets, **await _there(operation.source, names.positions_topic)}
    except (ApplianceError, TimeoutError):
        return None


async def _there(cluster: Cluster, name: str) -> Mapping[str, uuid.UUID]:
    found = (await cluster.metadata([name])).topics
    return {name: found[name].id} if name in found and found[name].leaders else {}


async def _fence(operation: Operation) -> None:
    """Record the deletion in every lane, once no replicator has taken one back."""
    link = operation.link
    if effective(link.states, LINK) is not CopyState.DELETED:
        for index in _busiest_lane(operation):
            await link.leave_name(index)
            await _require_left_alone(operation, index)
    await link.change(None, CopyEvent.DELETE)
    for record in link.states.values():
        if record.state is not CopyState.DELETED:
            raise LinkRefused(f"another command has made {record.subject} {record.state} meanwhile: end that first")


def _busiest_lane(operation: Operation) -> list[int]:
    """The lane with the most copied partitions; none if nothing is copied."""
    states = operation.link.states

    def active(index: int) -> int:
        positions = operation.link.checkpoints[index].positions
        return sum(effective(states, topic) is CopyState.ACTIVE for topic, _ in positions)

    index = max(range(len(operation.link.checkpoints)), key=active)
    return [index] if active(index) else []


async def _require_left_alone(operation: Operation, index: int) -> None:
    """Wait for a replicator that takes the lane back, and refuse it."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TAKEN_BACK_SECONDS
    while loop.time() < deadline:
        await operation.link.read()
        owner = operation.link.checkpoints[index].owner
        if owner is not None and owner.run != OPERATOR:
            raise LinkRefused(f"a replicator of this link runs, on {owner.host}: stop it first")
        await asyncio.sleep(_PAUSE)


def _link_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["delete"], help="give the link up")
    add_terms(command)
    command.add_argument("--delete-copies", action="store_true", help="delete the copies, but for promoted ones")
    command.add_argument("--delete-dead-letters", action="store_true", help=LETTERS)


LINK_COMMAND = Command(
    "Gives the link up: deletes its positions, maps of offsets, what a failback has left at the source and, with "
    "MM2_FORMATS, MirrorMaker 2's topics of this link. The copies stay, unless --delete-copies is given, and another "
    "link may take them. Refused while a replicator runs; one that starts later ends, and says why. "
    "`appliance resume --adopt-positions` makes the link anew. Killed anywhere, the same command again finishes it.",
    run_with(lambda parsed: partial(delete_link, delete_copies=parsed.delete_copies)),
    _link_options,
)
