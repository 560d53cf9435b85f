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
from appliance.commands.removal import LETTERS, CopyDisposal
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import Plan, add_terms, constant, run_with
from appliance.errors import ApplianceError, LinkRefused
from appliance.groups.group_places import withdraw_places
from appliance.kafka.client.interface import Cluster
from appliance.kafka.client.topics import delete_topics
from appliance.link.model.checkpoint import OPERATOR
from appliance.link.model.claims import Claim, memory_of
from appliance.link.model.copy_states import LINK, CopyEvent, CopyState, change, effective
from appliance.link.model.naming import HEARTBEATS, Naming
from appliance.runtime.command import Command

TAKEN_BACK_SECONDS = 8.0
"""Time in which a running replicator finds the operator's name on a lane and takes it back, in seconds."""

_SOURCE_SECONDS = 5.0
_PAUSE = 0.2


async def delete_link(operation: Operation, *, delete_copies: bool = False) -> Plan[DeletionReport]:
    """Delete the link; LinkRefused if there is none, or a topic is between two states."""
    registry, destination = operation.link.registry, await operation.destination.metadata(None)
    await registry.refresh()
    if operation.naming.positions_topic in destination.topics or not registry.ledger.deletion:
        await operation.lanes.read()
        _require_settled(operation)
    disposal = CopyDisposal(operation, destination, delete_copies)
    claimed = _copies(operation)
    copies = _kept_if_promoted(disposal.copies(claimed))
    topics = {name: destination.topics[name].id for name in _own_topics(operation.naming) if name in destination.topics}
    source_topics = await _source_topics(operation)
    at_source = None if source_topics is None else tuple(source_topics)
    foreseen = DeletionReport(registry.link, True, tuple(topics), at_source, copies)

    async def apply() -> DeletionReport:
        outcome = copies
        if operation.naming.positions_topic in topics:
            await _fence(operation)
            outcome = _kept_if_promoted(await disposal.copies_now(claimed))
        await disposal.delete(outcome)
        await _delete(operation, topics, source_topics or {})
        return replace(foreseen, dry_run=False, copies=outcome)

    deleted = sum(each.deleted for each in copies)
    if registry.ledger.deletion and not deleted:
        return Plan(constant(foreseen), apply)
    what = f"{len(topics)} topics of its own and {deleted} copies are deleted, {len(copies) - deleted} copies stay"
    return Plan(constant(foreseen), apply, f"delete the link {registry.link}: {what}", foreseen.lines())


async def _delete(
    operation: Operation, topics: Mapping[str, uuid.UUID], source_topics: Mapping[str, uuid.UUID]
) -> None:
    """Record the deletion, then delete the link's own topics at both clusters, the positions last."""
    registry, stamp, positions = operation.link.registry, operation.lanes.stamp, operation.naming.positions_topic
    await registry.give_up((), Claim(registry.link, now_ms(), deleted_by=stamp.by, why=stamp.why))
    if operation.naming.sharing.others_write:
        await withdraw_places(operation.link)
    await delete_topics(operation.source, source_topics)
    await delete_topics(operation.destination, {name: topics[name] for name in topics if name != positions})
    await delete_topics(operation.destination, {name: topics[name] for name in topics if name == positions})


def _require_settled(operation: Operation) -> None:
    lanes = operation.lanes
    for topic, state in change(lanes.states, None, CopyEvent.DELETE, lanes.stamp).kept.items():
        raise LinkRefused(f"{topic or 'the link'} is {state}: end that first")


def _copies(operation: Operation) -> list[tuple[str, str]]:
    """The source topics of this link's copies, empty if unknown, and the copies."""
    lanes, naming = operation.lanes, operation.naming
    topics = {topic for topic, _ in lanes.positions} | (lanes.states.keys() if lanes.checkpoints else set())
    sources = {naming.destination(topic): topic for topic in topics - {LINK}}
    claims, own = operation.link.registry.ledger.claims.items(), naming.replicator
    claimed = sorted({copy[0] for copy, claim in claims if claim.link == own and copy != memory_of(copy[0])})
    return [(sources.get(copy, LINK), copy) for copy in claimed if copy != naming.positions_topic]


def _kept_if_promoted(copies: Iterable[GivenUpCopy]) -> tuple[GivenUpCopy, ...]:
    """Keep promoted copies in any case: their records may exist nowhere else."""
    return tuple(replace(each, deleted=False, dead_letters_deleted=False) if each.promoted else each for each in copies)


def _own_topics(naming: Naming) -> list[str]:
    """The link's own topics at the destination, the positions last.

    Of a copy that others write too the commits of the groups' sync stay known: others may have to set them back.
    """
    mirror = [name for name in naming.mirror_topics if name != HEARTBEATS]  # all links share that one
    places = [] if naming.sharing.others_write else [naming.groups_topic]
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
    topics = (await cluster.metadata([name])).topics
    return {name: topics[name].id} if name in topics and topics[name].leaders else {}


async def _fence(operation: Operation) -> None:
    """Record the deletion in every lane, once no replicator has taken one back."""
    lanes = operation.lanes
    if effective(lanes.states, LINK) is not CopyState.DELETED:
        for index in _busiest_lane(operation):
            await lanes.leave_name(index)
            await _require_left_alone(operation, index)
    await lanes.change(None, CopyEvent.DELETE)
    for record in lanes.states.values():
        if record.state is not CopyState.DELETED:
            raise LinkRefused(f"another command has made {record.subject} {record.state} meanwhile: end that first")


def _busiest_lane(operation: Operation) -> list[int]:
    """The lane with the most copied partitions; none if nothing is copied."""
    states = operation.lanes.states

    def active(index: int) -> int:
        positions = operation.lanes.checkpoints[index].positions
        return sum(effective(states, topic) is CopyState.ACTIVE for topic, _ in positions)

    index = max(range(len(operation.lanes.checkpoints)), key=active)
    return [index] if active(index) else []


async def _require_left_alone(operation: Operation, index: int) -> None:
    """Wait for a replicator that takes the lane back, and refuse it."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TAKEN_BACK_SECONDS
    while loop.time() < deadline:
        await operation.lanes.read()
        owner = operation.lanes.checkpoints[index].owner
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
