"""Pausing and resuming copies."""

from functools import partial

from appliance.commands.model.report import Report
from appliance.commands.run.both_logs import both_logs
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import Plan, add_options, constant, run_of
from appliance.link.model.copy_states import CopyEvent, change
from appliance.runtime.command import Command


async def set_paused(operation: Operation, event: CopyEvent) -> Plan[Report]:
    """Pause or resume the command's topics."""
    lanes, link = operation.lanes, operation.naming.replicator
    await lanes.read()
    subjects = operation.subjects((await both_logs(operation, {}, needed=False)).ids if operation.choice.topic else ())
    planned = change(lanes.states, subjects, event, lanes.stamp)

    async def apply() -> Report:
        done = await lanes.change(subjects, event)
        return Report(link, False, done.records, done.kept)

    foreseen = constant(Report(link, True, planned.records, planned.kept))
    return Plan(foreseen, apply, f"{event.value} {planned.names}" if planned.records else "")


PAUSE = Command(
    "Pauses copying until `appliance resume`. Every lane is fenced first: when the command ends, nothing more is "
    "copied, whichever replicator runs.",
    run_of(partial(set_paused, event=CopyEvent.PAUSE)),
    add_options,
)
