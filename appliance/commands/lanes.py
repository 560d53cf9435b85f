"""``appliance lanes``: the lanes of a link with their load, another number of them, partitions placed by their load."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from appliance.commands.layout_change import change_layout, find_positions
from appliance.commands.model.lanes_report import LanesReport, Loads, balanced
from appliance.commands.run.both_logs import both_logs
from appliance.commands.run.operation import Operation
from appliance.commands.run.runner import Plan, Work, add_terms, constant, run_with
from appliance.errors import SettingsError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import LaneCheckpoint, LinkRecord
from appliance.link.model.copy_states import CopyState, States, effective
from appliance.link.model.layout import LANES_MAX, Layout
from appliance.link.model.position import Position
from appliance.runtime.command import Command, seconds

_SAMPLE = 5.0


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--set", type=int, metavar="N", help="have this many lanes (default: show them)")
    command.add_argument("--balance", action="store_true", help="place partitions by their load, not by hash alone")
    command.add_argument(
        "--sample",
        type=seconds,
        default=_SAMPLE,
        metavar="SECONDS",
        help="how long the load is measured; 0: all that was ever copied (default: %(default)g)",
    )
    add_terms(command)


def _lanes(parsed: argparse.Namespace) -> Work[LanesReport]:
    if parsed.set is not None and not 1 <= parsed.set <= LANES_MAX:
        raise SettingsError([f"--set {parsed.set}: expected a number from 1 to {LANES_MAX}"])
    return partial(lanes, count=parsed.set, balance=parsed.balance, sample=parsed.sample)


async def lanes(operation: Operation, count: int | None, *, balance: bool, sample: float) -> Plan[LanesReport]:
    """Show the lanes, or change their number and what lies in them."""
    topic = await find_positions(operation)
    loads = await _loads(operation, topic.positions, sample if balance or count is None else 0.0)

    def wanted(_: Sequence[LaneCheckpoint], link: LinkRecord) -> Layout:
        same = count is None or count == link.lanes
        layout = Layout(count or link.lanes, placed=link.layout.placed if same else {})
        return balanced(layout, loads.partitions) if balance else layout

    if count is None and not balance:
        shown = constant(LanesReport(operation.naming.replicator, topic.layout, topic.layout, loads))
        return Plan(shown, shown)
    return await change_layout(operation, wanted, loads)


async def _loads(operation: Operation, before: Mapping[Partition, Position], sample: float) -> Loads:
    """The loads, measured for some seconds; of what was ever copied where nothing is due, or without any."""
    ever = Loads({partition: float(position.bytes) for partition, position in before.items()})
    if sample <= 0:
        return ever
    await asyncio.sleep(sample)
    topic = await find_positions(operation)
    due = await _behind(operation, topic.positions, topic.checkpoints[0].states)
    for partition, position in topic.positions.items():
        copied = position.bytes - before.get(partition, position).bytes
        due[partition] = due.get(partition, 0.0) + max(0, copied)
    return Loads(due, sample) if any(due.values()) else ever


async def _behind(
    operation: Operation, positions: Mapping[Partition, Position], states: States
) -> dict[Partition, float]:
    """The bytes to copy yet, by the mean size of a partition's records; none where the source does not answer."""
    logs = await both_logs(operation, {}, needed=False)
    ends = {partition: log.end for partition, log in logs.sources.items() if log.end is not None}
    return {
        partition: max(0, ends[partition] - position.next_offset) * position.bytes / position.records
        for partition, position in positions.items()
        if partition in ends and position.records and not position.stopped
        if effective(states, partition[0]) is CopyState.ACTIVE
    }


LANES = Command(
    "Shows the lanes of the link and how partitions and load lie over them. --set gives the link another number of "
    "lanes, more or fewer: every lane is fenced, the positions move, and a running replicator goes on after a stall of "
    "seconds, without a restart. --balance moves partitions from busy lanes to others, and another number without it "
    "places all by hash. Killed anywhere, the same command again ends it.",
    run_with(_lanes),
    _options,
)
