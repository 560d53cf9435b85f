"""Promotions: copies become topics of their own. ``failover`` needs no source; ``promote`` needs it, and loses nothing.

Both fence every lane with ``failing over``, settle groups and losses, and then write ``promoted``. After a kill
anywhere, the same command continues from there.
"""

import argparse
import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from appliance.commands.model.loss import BothLogs, PartitionLoss, losses, total
from appliance.commands.model.report import Report
from appliance.commands.run.both_logs import both_logs
from appliance.commands.run.last_sync import are_told, last_sync
from appliance.commands.run.link_lanes import Subjects
from appliance.commands.run.operation import WAIT_SECONDS, Operation
from appliance.commands.run.runner import Plan, add_options, run_of
from appliance.commands.source_transactions import find_torn
from appliance.errors import ApplianceError, LinkRefused
from appliance.link.model.copy_states import LINK, CopyEvent, CopyState, StateChange, States, change, effective
from appliance.listing import counted, number, some
from appliance.runtime.command import Command, seconds

_PAUSE = 0.5
_SAY_AGAIN = 10
"""Number of looks between two progress lines."""

_NOTHING_TO_LOSE = frozenset({CopyState.FAILING_BACK, CopyState.REMOVED, CopyState.DELETED})

_PLANNED = {"planned": True}
"""Details of a state that a promotion has set, not a failover."""

_NOT_COPIED = {
    CopyState.PAUSED: "`appliance resume`",
    CopyState.RESETTING: "the same `appliance reset` again",
}
"""States in which a planned promotion waits in vain, with the command that ends them."""

_NAMED = 10
"""Number of partitions that an error names."""


async def failover(operation: Operation) -> Plan[Report]:
    """Promote the copies, whether the source answers or not."""
    lanes = operation.lanes
    await lanes.read()
    logs = await both_logs(operation, lanes.positions, needed=False)
    subjects = operation.subjects(logs.ids)
    planned = change(lanes.states, subjects, CopyEvent.FAIL_OVER, lanes.stamp)

    async def foreseen() -> Report:
        return await _report(operation, _foreseen(operation, subjects, planned), logs, {})

    async def apply() -> Report:
        while True:
            await lanes.change(subjects, CopyEvent.FAIL_OVER)
            await _take_over(operation, subjects)
            if not change(lanes.states, subjects, CopyEvent.FAIL_OVER, lanes.stamp).records:
                break  # else a promotion has given up just before it was taken over
        last = await both_logs(operation, lanes.positions, needed=False)
        groups = await last_sync(operation, last.answers)
        return await _promoted(operation, subjects, replace(planned, records=()), last, groups)

    behind = number(total(_losses(operation, logs)))
    question = f"fail over {planned.names}; records behind: {behind}" if planned.records else ""
    return Plan(foreseen, apply, question)


async def promote(operation: Operation) -> Plan[Report]:
    """Promote the copies once they hold all of the source's records; a source that still takes writes is refused.

    Unless losses are allowed, it is also refused where a partition cannot be copied to its end, or not in time, or the
    source does not list its groups.
    """
    lanes, choice = operation.lanes, operation.choice
    await lanes.read()
    logs = await both_logs(operation, lanes.positions)
    subjects = operation.subjects(logs.ids)
    planned = change(lanes.states, subjects, CopyEvent.FAIL_OVER, lanes.stamp)
    _require_copied(subjects, lanes.states, filter(choice.takes, logs.ids))
    _require_no_failover(operation, subjects)

    async def foreseen() -> Report:
        _require_no_faults(operation, _settling(operation, logs, CopyState.ACTIVE, CopyState.FAILING_OVER))
        _require_nothing_behind(operation, logs)  # what a killed promotion has fenced is not waited for
        _require_groups(operation, await are_told(operation))
        return await _report(operation, _foreseen(operation, subjects, planned), logs, {})

    async def apply() -> Report:
        named = operation.subjects((await _until_copied(operation)).ids) if planned.records else subjects
        return await _promote(operation, named, replace(planned, records=()))

    question = f"promote {planned.names} as soon as nothing is behind" if planned.records else ""
    return Plan(foreseen, apply, question)


async def _promote(operation: Operation, subjects: Subjects, kept: StateChange) -> Report:
    """Fence what is copied to its end, and promote it, or let it go on where something has come meanwhile."""
    await _fail_over_as_planned(operation, subjects)
    try:
        subjects, logs = await _with_what_came(operation, subjects)
        _require_nothing_behind(operation, logs)
        groups = await last_sync(operation)
        _require_groups(operation, groups is not None)
    except ApplianceError:
        await operation.lanes.change(_given_up(operation), CopyEvent.GIVEN_UP)
        raise
    return await _promoted(operation, subjects, kept, logs, groups)


async def _fail_over_as_planned(operation: Operation, subjects: Subjects) -> None:
    """Fence the lanes of these, and mark the states as a promotion's, which may be given up."""
    lanes = operation.lanes
    require, lanes.require = lanes.require, partial(_require_copied, subjects)  # one may be paused by now, or reset
    await lanes.change(subjects, CopyEvent.FAIL_OVER, lambda *_: _PLANNED)
    lanes.require = require


async def _with_what_came(operation: Operation, subjects: Subjects) -> tuple[Subjects, BothLogs]:
    """The subjects, with the new topics of the source, which are fenced as well, and the logs after that."""
    while True:
        logs = await both_logs(operation, operation.lanes.positions)
        now = operation.subjects(logs.ids)
        if subjects is None or now is None or set(now) <= set(subjects):
            return subjects, logs
        subjects = now
        await _fail_over_as_planned(operation, subjects)


async def _take_over(operation: Operation, subjects: Subjects) -> None:
    """Turn an unfinished promotion into a failover, which no promotion can give up."""
    lanes = operation.lanes
    chosen = _failing_over(operation, subjects)
    if _planned(lanes.states, chosen):
        await lanes.note(lambda states: [replace(states[name], details={}) for name in _planned(states, chosen)])
        await lanes.read()


def _planned(states: States, subjects: Iterable[str]) -> list[str]:
    """The subjects with their own state, in which a promotion has to end."""
    records = [record for subject in subjects if (record := states.get(subject))]
    failing = [record for record in records if record.state is CopyState.FAILING_OVER]
    return [record.topic for record in failing if _PLANNED.items() <= record.details.items()]


def _given_up(operation: Operation) -> list[str]:
    """The command's subjects that a promotion has fenced: a failover is never undone."""
    states, choice = operation.lanes.states, operation.choice
    return [name for name in _planned(states, sorted(states)) if not choice.topic or (name and choice.takes(name))]


def _require_no_failover(operation: Operation, subjects: Subjects) -> None:
    """Refuse the subjects of a failover: a promotion that has to be given up would undo it."""
    states = operation.lanes.states
    records = [states.get(subject) or states[LINK] for subject in _failing_over(operation, subjects)]
    names = sorted({record.subject for record in records if not _PLANNED.items() <= record.details.items()})
    if names:
        text = "a failover has begun, and has not ended: run `appliance failover` again"
        raise LinkRefused(f"{some(names, _NAMED)}: {text}")


def _require_groups(operation: Operation, are_known: bool) -> None:
    if not (are_known or operation.choice.allow_loss):
        what = "the groups' offsets are not told, and would be read again from where they were synchronized last"
        raise LinkRefused(f"{what}: promote again, or with --allow-loss; copying goes on")


async def _promoted(
    operation: Operation,
    subjects: Subjects,
    kept: StateChange,
    logs: BothLogs,
    groups: Mapping[str, str] | None,
) -> Report:
    """Write ``promoted`` for all settled subjects."""
    chosen = _failing_over(operation, subjects)
    if not chosen:
        return await _report(operation, kept, logs, {})
    outcome = await operation.lanes.change(chosen, CopyEvent.PROMOTED)
    return await _report(operation, replace(kept, records=outcome.records), logs, groups)


def _failing_over(operation: Operation, subjects: Subjects) -> list[str]:
    states = operation.lanes.states
    named = {LINK, *states} if subjects is None else subjects
    return [subject for subject in sorted(named) if effective(states, subject) is CopyState.FAILING_OVER]


async def _report(
    operation: Operation, outcome: StateChange, logs: BothLogs, groups: Mapping[str, str] | None
) -> Report:
    lost, dry_run = tuple(_losses(operation, logs)), operation.choice.dry_run
    torn = await find_torn(operation.source, logs, lost) if logs.answers else None
    return Report(operation.naming.replicator, dry_run, outcome.records, outcome.kept, lost, groups, torn)


def _foreseen(operation: Operation, subjects: Subjects, planned: StateChange) -> StateChange:
    """The states in which a run ends, also where an earlier one was killed."""
    failing = [replace(operation.lanes.stamp, topic=subject) for subject in _failing_over(operation, subjects)]
    records = tuple(replace(record, state=CopyState.PROMOTED) for record in (*planned.records, *failing))
    return replace(planned, records=records)


def _losses(operation: Operation, logs: BothLogs) -> list[PartitionLoss]:
    """The losses in the command's topics; a topic that fails back, or was removed, has none."""
    states = operation.lanes.states

    def takes(topic: str) -> bool:
        return operation.choice.takes(topic) and effective(states, topic) not in _NOTHING_TO_LOSE

    return losses(operation.lanes.positions, logs, takes, operation.lanes.checkpoints[0].starts)


def _require_copied(subjects: Subjects, states: States, named: Iterable[str] = ()) -> None:
    """Refuse uncopied topics: their copies would stay incomplete, and a promotion given up would resume them."""
    names = {*(subjects if subjects is not None else {LINK, *states}), *named}
    for state, help_text in _NOT_COPIED.items():
        uncopied = [name or "the link" for name in sorted(names) if effective(states, name) is state]
        if uncopied:
            raise LinkRefused(f"{some(uncopied, _NAMED)}: {state}, so never copied to the end: {help_text} first")


async def _until_copied(operation: Operation) -> BothLogs:
    """Wait until no copied topic is behind; the source's logs at that time."""
    loop, choice, looks = asyncio.get_running_loop(), operation.choice, 0
    deadline = loop.time() + choice.wait
    while True:
        await operation.lanes.read()
        logs = await both_logs(operation, operation.lanes.positions)
        active = _settling(operation, logs, CopyState.ACTIVE)
        _require_no_faults(operation, active)
        if not (behind := [loss for loss in active if loss.behind != 0 and not loss.fault]):
            return logs
        if loop.time() >= deadline:
            if choice.allow_loss:
                return logs
            raise LinkRefused(
                f"not copied within {choice.wait:g} s: {some(behind, _NAMED, '; ')}; or promote with --allow-loss"
            )
        if looks % _SAY_AGAIN == 0:
            operation.tell(f"waiting for {counted(len(behind), 'partition')}, records behind: {number(total(behind))}")
        looks += 1
        await asyncio.sleep(_PAUSE)


def _settling(operation: Operation, logs: BothLogs, *states: CopyState) -> list[PartitionLoss]:
    """The partitions whose copies have one of these states."""
    states_now = operation.lanes.states
    return [loss for loss in _losses(operation, logs) if effective(states_now, loss.topic) in states]


def _require_no_faults(operation: Operation, settling: Iterable[PartitionLoss]) -> None:
    faults = [loss for loss in settling if loss.fault]
    if faults and not operation.choice.allow_loss:
        raise LinkRefused(
            f"cannot be copied to the end: {some(faults, _NAMED, '; ')}; mend it by what `appliance "
            "status` prints, or promote with --allow-loss"
        )


def _require_nothing_behind(operation: Operation, logs: BothLogs) -> None:
    settling = _settling(operation, logs, CopyState.FAILING_OVER)
    _require_no_faults(operation, settling)
    behind = [loss for loss in settling if loss.behind != 0]
    if behind and not operation.choice.allow_loss:
        all_known = all(loss.behind is not None for loss in behind)
        what = "the source still takes writes: stop the producers" if all_known else "not all is known: promote again"
        raise LinkRefused(f"{what}, or promote with --allow-loss: {some(behind, _NAMED, '; ')}; copying goes on")


def _promote_options(command: argparse.ArgumentParser) -> None:
    add_options(command)
    command.add_argument(
        "--allow-loss", action="store_true", help="promote though something is behind, or the source takes writes"
    )
    command.add_argument(
        "--wait", type=seconds, default=WAIT_SECONDS, metavar="SECONDS", help="for the copies (default: %(default)g)"
    )


FAILOVER = Command(
    "Promotes the copies when the source is lost: fences every lane, so that no replicator can write to them any "
    "more, finishes the groups if the source answers, and prints for each partition how far it is copied and what is "
    "lost. What nobody knows is unknown, never 0. Killed anywhere, the same command again finishes it.",
    run_of(failover),
    add_options,
)

PROMOTE = Command(
    "Promotes the copies as planned, with nothing lost: waits until nothing is behind, fences every lane, and asks "
    "the source again. If it still takes writes, copying goes on and the command refuses. Stop the producers first.",
    run_of(promote),
    _promote_options,
)
