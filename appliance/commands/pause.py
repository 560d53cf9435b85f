"""Pausing and resuming copies."""

from functools import partial

from appliance.commands.model.report import Report
from appliance.commands.run.both_logs import both_logs
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import add_options, run_of
from appliance.link.model.copy_states import CopyEvent, change
from appliance.runtime.command import Command


async def set_paused(operation: Operation, event: CopyEvent) -> Report:
    """Pause or resume the command's topics. After a kill anywhere, the same command continues.

    Raises:
        ApplianceError: as ``LinkLanes.change``.
    """
    lanes, choice = operation.lanes, operation.choice
    await lanes.read()
    subjects = operation.subjects((await both_logs(operation, {}, needed=False)).ids if choice.topic else ())
    made = change(lanes.states, subjects, event, lanes.stamp)
    if not choice.dry_run:
        if made.records:
            await operation.consent(f"{event.value} {', '.join(record.subject for record in made.records)}")
        made = await lanes.change(subjects, event)
    return Report(operation.naming.replicator, choice.dry_run, made.records, made.kept)


PAUSE = Command(
    "Pauses copying until `appliance resume`. Every lane is fenced first: when the command ends, nothing more is "
    "copied, whichever replicator runs.",
    run_of(partial(set_paused, event=CopyEvent.PAUSE)),
    add_options,
)
