"""``appliance offsets``: translates offsets to those of the copies and back, and builds maps of offsets."""

import argparse
import asyncio

from appliance.commands.offset_translation import add_options, translate
from appliance.commands.offsets_build import build
from appliance.kafka.protocol.metadata import Partition
from appliance.output import say
from appliance.runtime.command import Command, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


def _offsets_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["translate", "build"], help="translate offsets, or build what is missing")
    add_options(command)
    command.add_argument("--dry-run", action="store_true", help="say what build would read, and build nothing")


async def _offsets(settings: Settings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    if parsed.action == "translate":
        return await translate(settings, parsed)

    def chosen(partition: Partition) -> bool:
        return parsed.topic in (None, partition[0]) and parsed.partition in (None, partition[1])

    return 1 if await build(settings, chosen, say, only_plan=parsed.dry_run) else 0


OFFSETS = Command(
    "translate says at which offset of the copy a consumer continues that has read the source up to an offset, or with "
    "--reverse the other way: exactly, or that it is not known. Only the destination is asked, but for what --group "
    "has committed at the source. Exit code 0 when every answer is exact. build reads both logs of what was copied "
    "before there were maps of offsets, of all topics or of --topic, and writes the maps; exit code 0 when nothing is "
    "left that can be built. The replicator may run meanwhile.",
    with_settings(Role.REPLICATOR, _offsets),
    _offsets_options,
)
