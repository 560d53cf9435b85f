"""The commands, the status and the groups' sync made wrong, each in one way (invariants N and O)."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from appliance.commands import promotion
from appliance.commands.model import loss
from appliance.groups import source_groups
from appliance.link.client.log_ends import EpochEnds
from appliance.link.model import agreement
from appliance.link.model.agreement import Agreement, CopyLog, SourceLog
from appliance.link.model.offset_map import OffsetMap
from appliance.link.model.position import Position
from appliance.link.model.translation import Translation
from appliance.status.model import compose_partition


def losses_by_ends_alone(patch: pytest.MonkeyPatch) -> None:
    """How far two logs agree is asked by their ends alone, whatever was truncated and written on."""

    def by_ends(held: Position, source: SourceLog) -> Agreement:
        if source.end is None:
            return Agreement()
        return Agreement(held.next_offset, max(0, source.end - held.next_offset), 0, by_ends=True)

    patch.setattr(agreement, "divergence", by_ends)


def copy_not_judged(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether the copy is there, is the one that was written, and holds what it had acknowledged."""
    agree = agreement.agree

    def trusting(topic: str, held: Position, source: SourceLog | None, copy: CopyLog) -> Agreement:
        there = CopyLog(copy.partition, held.destination_id)
        return agree(topic, replace(held, copy_end=None), source, there)

    for module in (loss, compose_partition):
        patch.setattr(module, "agree", trusting)


def looked_before_fencing(patch: pytest.MonkeyPatch) -> None:
    """A promotion reports what it has seen before it fenced the lanes."""
    look = promotion.both_logs
    seen: dict[int, Any] = {}

    async def once(operation: Any, positions: Mapping[Any, Position], *, needed: bool = True) -> Any:
        if id(operation) not in seen:
            seen[id(operation)] = operation, await look(operation, positions, needed=needed)
        return seen[id(operation)][1]

    patch.setattr(promotion, "both_logs", once)


def position_without_an_epoch(patch: pytest.MonkeyPatch) -> None:
    """A position that a command moves says nothing of the leader of what lies before it."""
    begin_again: Callable[..., Position] = Position.begin_again

    def without(self: Position, source_id: uuid.UUID, destination_id: uuid.UUID, place: Any) -> Position:
        return replace(begin_again(self, source_id, destination_id, place), leader_epoch=-1)

    patch.setattr(Position, "begin_again", without)


def newest_copy_of_a_record(patch: pytest.MonkeyPatch) -> None:
    """A group is set to the newest copy of the record that it reads next, past others that it has not read."""
    patch.setattr(OffsetMap, "unread_from", lambda self, offset, _: self.translate(offset))


def set_below_the_start(patch: pytest.MonkeyPatch) -> None:
    """A group is set to where its record was, though retention has taken it."""
    unread_from = OffsetMap.unread_from

    def from_the_beginning(self: OffsetMap, offset: int, _: int) -> Translation:
        return unread_from(self, offset, 0)

    patch.setattr(OffsetMap, "unread_from", from_the_beginning)
    patch.setattr(Translation, "within", lambda self, *_: self)


def set_past_what_is_read(patch: pytest.MonkeyPatch) -> None:
    """A group is set to the end of its copy."""
    patch.setattr(OffsetMap, "unread_from", lambda self, _, __: self.translate(self._next_source))


def left_where_its_source_lost_records(patch: pytest.MonkeyPatch) -> None:
    """A group keeps its offset though its source was truncated below it, and written on."""

    class Untold(EpochEnds):
        async def read(self, *_: Any) -> tuple[dict[Any, int], dict[Any, Any]]:
            return {}, {}

    patch.setattr(source_groups, "EpochEnds", Untold)


COMMAND_MUTATIONS = {
    "losses by ends alone": losses_by_ends_alone,
    "a copy that is not judged": copy_not_judged,
    "logs looked at before fencing": looked_before_fencing,
    "a position without an epoch": position_without_an_epoch,
    "a group set to the newest copy of a record": newest_copy_of_a_record,
    "a group set below its copy's start": set_below_the_start,
    "a group set past what it has read": set_past_what_is_read,
    "a group left where its source lost records": left_where_its_source_lost_records,
}
