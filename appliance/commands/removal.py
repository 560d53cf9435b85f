"""Removing topics for good: their copies become independent topics, or are deleted.

1. ``removed`` in every lane: no replicator copies them, makes their copies or claims them, whatever the regex says.
2. The copies are deleted, if requested, and only while they are still this link's.
3. The claims are withdrawn: the registry remembers the shared copies that the link has begun. Then every lane forgets
   the positions and maps. The claims are withdrawn once more, as a replicator that had read the states before may have
   claimed a copy again.

After a kill anywhere, the same command continues.
"""

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from appliance.commands.model.removal_report import GivenUpCopy, RemovalReport, copied_records
from appliance.commands.run.both_logs import both_logs
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import Plan, add_options, constant, run_with
from appliance.errors import LinkRefused, SettingsError
from appliance.groups.group_places import withdraw_places
from appliance.kafka.client.topics import delete_topics
from appliance.kafka.protocol.metadata import Metadata, is_another
from appliance.link.model.copy_states import LINK, CopyEvent, CopyState, States, change, effective
from appliance.link.model.naming import DEAD_LETTERS
from appliance.link.model.position import UNACCOUNTED, UNKNOWN
from appliance.listing import counted, some
from appliance.runtime.command import Command


async def remove_topics(operation: Operation, *, delete_copies: bool = False) -> Plan[RemovalReport]:
    """Remove the command's topics; LinkRefused if one is between two states, or is promoted and would be deleted."""
    lanes, registry = operation.lanes, operation.link.registry
    if not operation.choice.topic:
        raise SettingsError(["--topic is needed: '.*' is every topic, and `appliance link delete` gives the link up"])
    await lanes.read()
    topics = operation.subjects((await both_logs(operation, {}, needed=False)).ids) or ()
    planned = change(lanes.states, topics, CopyEvent.REMOVE, lanes.stamp)
    for topic, state in planned.kept.items():
        raise LinkRefused(f"topic {topic} is {state}: end that first")
    await registry.refresh()
    disposal = CopyDisposal(operation, await operation.destination.metadata(None), delete_copies)
    copies = {topic: operation.naming.destination(topic) for topic in topics}
    foreseen = RemovalReport(operation.naming.replicator, True, disposal.copies(copies.items()))
    disposal.require_not_promoted(foreseen.removed)

    async def apply() -> RemovalReport:
        return replace(foreseen, dry_run=False, removed=await _remove(operation, disposal, copies))

    if not planned.records:
        return Plan(constant(foreseen), apply)
    deleted = sum(each.deleted for each in foreseen.removed)
    question = f"stop copying {counted(len(planned.records), 'topic')} for good, and delete {deleted} copies"
    return Plan(constant(foreseen), apply, question, foreseen.lines())


async def _remove(operation: Operation, disposal: "CopyDisposal", copies: Mapping[str, str]) -> tuple[GivenUpCopy, ...]:
    """Give the copies up, by source topic; what has become of them."""
    lanes, registry = operation.lanes, operation.link.registry
    await lanes.change(copies, CopyEvent.REMOVE)
    lanes.require = _still_removed(copies)
    lanes.require(lanes.states)
    outcome = await disposal.copies_now(copies.items())
    disposal.require_not_promoted(outcome)
    await disposal.delete(outcome)
    await registry.give_up(copies.values())
    for index, checkpoint in enumerate(lanes.checkpoints):
        if any(topic in copies for topic, _ in checkpoint.positions):
            await lanes.forget(index, copies)
    await registry.give_up(copies.values())
    if operation.naming.sharing.others_write:  # the other links' groups are held back no longer
        await withdraw_places(operation.link, copies.values())
    return outcome


def _still_removed(topics: Collection[str]) -> Callable[[States], None]:
    def require(states: States) -> None:
        for topic in topics:
            if (state := effective(states, topic)) is not CopyState.REMOVED:
                raise LinkRefused(f"another command has made {topic} {state} meanwhile: run this one again")

    return require


@dataclass(frozen=True, slots=True)
class CopyDisposal:
    """The copies of removed topics, by the registry and the destination."""

    operation: Operation
    there: Metadata
    deletes: bool

    def copies(self, copies: Iterable[tuple[str, str]]) -> tuple[GivenUpCopy, ...]:
        """The future of copies, given by source topic, by the current states."""
        return tuple(self._copy(topic, copy) for topic, copy in copies)

    async def copies_now(self, copies: Iterable[tuple[str, str]]) -> tuple[GivenUpCopy, ...]:
        """The same after the operator was asked: one may have been promoted meanwhile, or taken over."""
        await self.operation.link.registry.refresh()
        return self.copies(copies)

    def _copy(self, topic: str, copy: str) -> GivenUpCopy:
        """The future of a copy; another link's stays unchanged, and so does a shared one, with others' records."""
        operation, claims = self.operation, self.operation.link.registry.ledger.claims
        existing, shared = self.there.topics.get(copy), operation.naming.sharing.others_write
        claim = claims.get((copy, existing.id)) if existing else None
        ours = claim is not None and claim.link == operation.naming.replicator and not (shared or claim.shares)
        deleted = self.deletes and ours and self._is_accounted_for(topic, copy)
        records = copied_records(operation.lanes.checkpoints, operation.naming).get(copy)
        disposed = GivenUpCopy(topic, copy, existing is not None, deleted, self._was_promoted(topic), records)
        letters = self.there.topics.get(copy + DEAD_LETTERS)
        if letters is None or (letters.name, letters.id) in claims:  # a copy of that name is somebody's own
            return disposed
        also = deleted and operation.choice.deletes_dead_letters
        return replace(disposed, dead_letters=letters.name, dead_letters_deleted=also)

    def _is_accounted_for(self, topic: str, copy: str) -> bool:
        """True of a copy that began with this link; one that was filled before is claimed as well, and waits."""
        positions = self.operation.lanes.positions.items()
        of_topic = [position for (name, _), position in positions if name == topic]
        return bool(of_topic) and not any(
            is_another(each.destination_id, self.there.topics[copy].id)
            or each.next_offset == UNKNOWN
            or each.has_stopped_for(UNACCOUNTED)
            for each in of_topic
        )

    def _was_promoted(self, topic: str) -> bool:
        """True of a copy that is promoted, or was: somebody else may write to it."""
        states = self.operation.lanes.states
        record = states.get(topic) or states.get(LINK)
        return record is not None and record.is_or_was_promoted

    def require_not_promoted(self, copies: Collection[GivenUpCopy]) -> None:
        """Refuse to delete records that may exist nowhere else."""
        promoted = [each.copy for each in copies if each.deleted and each.promoted]
        if promoted:
            raise LinkRefused(
                f"{some(promoted, 10)}: promoted, so what was written there may be nowhere else: delete it yourself"
            )

    async def delete(self, copies: Collection[GivenUpCopy]) -> None:
        """Delete the copies for which that is requested, and before each its dead letters: a later run finds both."""
        letters = [each.dead_letters for each in copies if each.dead_letters and each.dead_letters_deleted]
        await delete_topics(self.operation.destination, {name: self.there.topics[name].id for name in letters})
        chosen = {each.copy: self.there.topics[each.copy].id for each in copies if each.deleted}
        await delete_topics(self.operation.destination, chosen)


LETTERS = "with them, delete the topics of their dead letters"
"""The help of the option that does so."""


def _removal_options(command: argparse.ArgumentParser) -> None:
    add_options(command, "the source topics; '.*' is all that there are now")
    command.add_argument("--delete-copy", action="store_true", help="delete the copies, but for those of others")
    command.add_argument("--delete-dead-letters", action="store_true", help=LETTERS)


RM_TOPIC = Command(
    "Stops copying topics for good, though the settings choose them. Each copy stays as a topic of its "
    "own, which another link may take, unless --delete-copy is given. Their positions and maps of offsets are given "
    "up. `appliance resume --removed --topic` copies them again, from where you then say. Killed anywhere, the same "
    "command again finishes it.",
    run_with(lambda parsed: partial(remove_topics, delete_copies=parsed.delete_copy)),
    _removal_options,
)
