"""``appliance adopt``: the adoption of a link's copies from MirrorMaker 2, which has stopped.

1. Both logs of every partition are compared. Nothing is written before the operator has seen where each goes on.
2. The topics are ``paused`` in every lane, with a detail that names the adoption: a replicator copies nothing of them.
3. The link record is written, if there is none; then the copies are claimed, with the offsets where ours begin.
4. Every lane gets the positions of its partitions, with the ends of their copies, where their maps of offsets begin.
5. The topics are active.

After a kill anywhere, the same command continues: the partitions that have a position keep it, the others are compared
again. Until then a replicator leaves the topics alone.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace

from appliance.clock import now_ms
from appliance.commands.adoption.finding import ADOPTS, Adoption, Choice, is_adopting
from appliance.commands.adoption.mirror_maker import MirrorMaker
from appliance.commands.adoption.model.plan import Allowed, Beginning
from appliance.commands.adoption.model.report import AdoptionReport
from appliance.commands.run.link_lanes import Moves
from appliance.commands.run.operation import WAIT_SECONDS, Operation
from appliance.commands.run.runner import Plan, Work, add_options, constant, run_with
from appliance.engine.write.copies import as_found
from appliance.errors import LinkRefused
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client.retry import retry_while_busy
from appliance.link.model.checkpoint import Gap
from appliance.link.model.claims import AdoptedPartition, Copy, belongs_to_another
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.offset_tail import OffsetTail
from appliance.link.model.position import UNKNOWN, Position, SourcePlace
from appliance.link.model.replicas import Replica, lanes_of
from appliance.listing import some
from appliance.runtime.command import Command, seconds

_NAMED = 10


async def adopt(operation: Operation, choice: Choice) -> Plan[AdoptionReport]:
    """Adopt the chosen topics; LinkRefused while MirrorMaker 2 runs, SettingsError if nothing matches."""
    run = Adoption(operation, choice)
    await run.find()
    report = run.report()

    async def apply() -> AdoptionReport:
        if report.refused:
            named = some([each.logs.replica.name for each in report.refused], _NAMED)
            raise LinkRefused(f"nothing was changed: {len(report.refused)} partitions cannot be adopted: {named}")
        await _write(run)
        return report

    question = f"adopt {report.numbers()}" if report.beginnings and not report.refused else ""
    return Plan(constant(report), apply, question, replace(report, dry_run=True).lines() if report.beginnings else ())


async def _write(run: Adoption) -> None:
    """Make the link with these positions; without any, end what a killed run has left."""
    lanes, planned = run.operation.lanes, run.beginnings
    topics = {each.source_topic for each in planned} | run.unfinished
    if not planned and not run.positions:
        return
    await run.establishing.topics.make_positions()
    await run.establishing.check.existing_positions()
    await retry_while_busy(lanes.read)
    if planned:
        await lanes.change(sorted(topics), CopyEvent.PAUSE, lambda _, __: {ADOPTS: "mm2"})
        await run.establishing.establish()
        await _claim(run)
        metadata = await _unchanged(run)
        for index, owned in lanes_of(planned, lanes.layout).items():

            def moves(positions: Mapping[Partition, Position], owned: Sequence[Replica] = owned) -> Moves:
                return _moves(run, owned, metadata, positions)

            await lanes.move(index, moves)
    ended = sorted(topic for topic in topics if is_adopting(lanes.states.get(topic)))
    await lanes.change(ended, CopyEvent.RESUME)  # also tells the lanes that a killed run has not told


async def _claim(run: Adoption) -> None:
    """Claim the copies, and record where ours begin in them."""
    registry = run.operation.link.registry
    copies = {each.destination_topic: each.destination_id for each in run.beginnings}
    for name, claim in (await registry.claim(copies)).items():
        raise LinkRefused(belongs_to_another(name, claim, run.operation.naming))
    adopted: dict[Copy, dict[int, AdoptedPartition]] = {}
    for copy in copies.items():
        adopted[copy] = {each.partition: each for each in registry.ledger.claims[copy].adopted}
    for replica, each in run.beginnings.items():
        if each.logs.copy.end:
            some = adopted[replica.destination_topic, replica.destination_id]
            some[replica.partition] = AdoptedPartition(replica.partition, each.offset, each.logs.copy.end)
    await registry.note_adopted({copy: tuple(some[key] for key in sorted(some)) for copy, some in adopted.items()})


async def _unchanged(run: Adoption) -> Metadata:
    """The metadata of the copies, to which nobody has written since they were compared."""
    await run.require_stopped()
    copies, destination = [each.copy for each in run.beginnings], run.operation.destination
    metadata = await destination.metadata(sorted({topic for topic, _ in copies}))
    ends = await list_offsets(destination, metadata, copies, Bound.END)
    for replica, each in run.beginnings.items():
        if ends[replica.copy] != each.logs.copy.end:
            name = str(replica.copy)
            raise LinkRefused(f"somebody has written to {name} meanwhile: is MirrorMaker 2 running? Run this again")
    return metadata


def _moves(
    run: Adoption, owned: Sequence[Replica], metadata: Metadata, positions: Mapping[Partition, Position]
) -> Moves:
    """The positions of a lane, without those of an earlier try."""
    now = now_ms()
    unmoved = [
        each for each in owned if (position := positions.get(each.source)) is None or position.next_offset == UNKNOWN
    ]
    gaps = [
        Gap(replica.source, replica.source_id, span.start, span.end, "MirrorMaker 2 had not copied it", now)
        for replica in unmoved
        for span in run.beginnings[replica].missing
    ]
    return Moves({each: _position(run.beginnings[each], run.epochs[each.source], metadata) for each in unmoved}, gaps)


def _position(beginning: Beginning, epoch: int, metadata: Metadata) -> Position:
    """The first position of a partition: its map of offsets begins at the end of the copy."""
    replica, place = beginning.logs.replica, SourcePlace(beginning.offset, epoch)
    end = as_found(beginning.logs.copy.end, metadata, replica.copy)
    tail = OffsetTail.begin(place.offset, end.offset)
    return Position(replica.source_id, replica.destination_id, *place, copy_end=end, tail=tail)


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", choices=["mm2"], help="the program that has copied until now: MirrorMaker 2")
    add_options(command, "only these source topics (default: all with a copy)")
    command.add_argument("--alias", default="", help="its name of the source cluster (default: SOURCE_CLUSTER_ID)")
    command.add_argument("--offsets-topic", default="", metavar="T", help="(default: mm2-offsets.ALIAS.internal)")
    command.add_argument("--group", default="", metavar="G", help="the group of its workers (default: ALIAS-mm2)")
    command.add_argument("--connector", default="", metavar="NAME", help="its source connector (default: any)")
    command.add_argument("--whole", action="store_true", help="compare both logs from their first records on")
    command.add_argument("--allow-loss", action="store_true", help="go on after records that it has left out")
    command.add_argument("--allow-doubles", action="store_true", help="go on before records that it has copied")
    command.add_argument(
        "--wait",
        type=seconds,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help="for open transactions of the source (default: %(default)g)",
    )


def _work(parsed: argparse.Namespace) -> Work[AdoptionReport]:
    async def work(operation: Operation) -> Plan[AdoptionReport]:
        alias = parsed.alias or operation.naming.source
        mirror = MirrorMaker(alias, parsed.group, parsed.offsets_topic, parsed.connector)
        allowed = Allowed(parsed.allow_loss, parsed.allow_doubles)
        return await adopt(operation, Choice(mirror, allowed, parsed.whole))

    return work


ADOPT = Command(
    "Goes on in place where MirrorMaker 2 has stopped: copies nothing again and loses nothing. Its committed offsets "
    "are where both logs begin to be compared; what the copy holds beyond them, and what it holds twice, is found and "
    "printed for each partition. Refused while MirrorMaker 2 runs. Start the replicator afterwards. Killed anywhere, "
    "the same command again finishes it.",
    run_with(_work),
    _options,
)
