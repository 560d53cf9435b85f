"""``appliance offsets``: translates offsets of the source to those of the copies and back, and builds maps of offsets.

For a translation only the destination is asked, except for a group's commits at the source.
"""

import argparse
import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from appliance.commands.offsets_build import MapOutcome, build
from appliance.errors import SettingsError, raise_first
from appliance.groups.group_io import read_groups, topic_ids
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.protocol.metadata import NOWHERE, Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.handle import Link
from appliance.link.model.topic_choice import add_topic_options, among, takes
from appliance.link.model.translation import TranslationState
from appliance.listing import counted
from appliance.output import say, say_rows
from appliance.runtime.command import Command, add_json, until_stopped, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


@dataclass(frozen=True, slots=True)
class TranslatedOffset:
    """One line of the answer: an offset on one side, and on the other if known."""

    topic: str
    partition: int
    offset: int
    to_topic: str
    to_offset: int | None
    state: TranslationState
    behind: int
    reason: str = ""

    def __str__(self) -> str:
        """Describe it in one line."""
        where = f"{self.topic}-{self.partition} offset {self.offset:,}"
        if self.state is TranslationState.EXACT:
            return f"{where} is {self.to_topic}-{self.partition} offset {self.to_offset:,}"
        if self.state is TranslationState.AHEAD:
            return f"{where} is {counted(self.behind, 'offset')} past what is copied"
        return f"{where} is unknown in {self.to_topic}-{self.partition}" + (f": {self.reason}" if self.reason else "")


class _Asked(NamedTuple):
    """An offset to translate, of the source topic with this id if known."""

    partition: Partition
    offset: int
    source_id: UUID = NOWHERE


async def _translate(settings: Settings, parsed: argparse.Namespace) -> int:
    """Print the translations; the exit code is 0 when all are exact."""
    async with Link.open(settings) as link:
        maps = link.maps()
        await maps.refresh(())
        questions = await _asked(link, maps, parsed)
        sources = maps.copies()
        await maps.refresh({sources[each.partition] if parsed.reverse else each.partition for each in questions})
        lines = [_translated(maps, each, parsed.reverse) for each in questions]
    say_rows(lines, as_json=parsed.json)
    return 0 if all(line.state is TranslationState.EXACT for line in lines) else 1


async def _asked(link: Link, maps: OffsetMaps, parsed: argparse.Namespace) -> Sequence[_Asked]:
    """The requested offsets: the one of the options, or those of a group in copied topics."""
    copies = maps.copies()
    ours: Collection[Partition] = copies.keys() if parsed.reverse else copies.values()
    if parsed.group is None:
        if not parsed.topic or None in (parsed.partition, parsed.offset):
            raise SettingsError(["give --group, or --topic, --partition and --offset"])
        topics = {partition.topic for partition in ours if partition.number == parsed.partition}
        if not any(takes(parsed.topic, topic) for topic in topics):
            raise_first(maps.failures.values())
        chosen = among(parsed.topic, topics, f"it has no partition {parsed.partition} that is copied")
        return [_Asked(Partition(topic, parsed.partition), parsed.offset) for topic in chosen]
    if parsed.reverse:
        return await _committed(link.destination, parsed.group, ours)
    questions = await _committed(link.source, parsed.group, ours)
    ids = await topic_ids(link.source, {each.partition[0] for each in questions})
    return [each._replace(source_id=ids.get(each.partition[0], NOWHERE)) for each in questions]


async def _committed(cluster: KafkaCluster, group: str, ours: Collection[Partition]) -> list[_Asked]:
    groups = await read_groups(cluster, lambda name: name == group)
    raise_first(groups.failures.values())
    commits = {key: commit for key, commit in groups.offsets.get(group, {}).items() if key in ours}
    if not commits:
        raise SettingsError([f"--group {group}: it has committed nothing in the {cluster.side} cluster that is copied"])
    return [_Asked(partition, commit.offset) for partition, commit in sorted(commits.items())]


def _translated(maps: OffsetMaps, asked: _Asked, reverse: bool) -> TranslatedOffset:
    partition, offset, source_id = asked
    translation = maps.reverse(partition, offset) if reverse else maps.translate(partition, offset, source_id)
    sources = maps.copies()
    other = sources[partition] if reverse else next(copy for copy, source in sources.items() if source == partition)
    return TranslatedOffset(
        *partition, offset, other[0], translation.offset, translation.state, translation.behind, translation.reason
    )


def _offsets_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["translate", "build"], help="translate offsets, or build what is missing")
    command.add_argument("--group", metavar="G", help="all that this group has committed of what is copied")
    add_topic_options(command, "the source topic; with --reverse the copy")
    command.add_argument("--partition", type=int, metavar="P", help="its partition")
    command.add_argument("--offset", type=int, metavar="N", help="the offset there")
    command.add_argument("--reverse", action="store_true", help="from the copy to the source")
    add_json(command)
    command.add_argument("--dry-run", action="store_true", help="say what build would read, and build nothing")


async def _offsets(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    if parsed.action == "translate":
        return await _translate(settings, parsed)

    def chosen(partition: Partition) -> bool:
        return takes(parsed.topic, partition[0]) and parsed.partition in (None, partition[1])

    outcomes: list[MapOutcome] = []
    failures = await build(settings, chosen, outcomes.append if parsed.json else say, only_plan=parsed.dry_run)
    if parsed.json:
        say_rows(outcomes, as_json=True)
    return 1 if failures else 0


OFFSETS = Command(
    "translate says at which offset of the copy a consumer continues that has read the source up to an offset, or with "
    "--reverse the other way: exactly, or that it is not known. Only the destination is asked, but for what --group "
    "has committed at the source. Exit code 0 when every answer is exact. build reads both logs of what was copied "
    "before there were maps of offsets, of all topics or of --topic, and writes the maps; exit code 0 when nothing is "
    "left that can be built. The replicator may run meanwhile.",
    until_stopped(with_settings(Role.REPLICATOR, _offsets)),
    _offsets_options,
)
