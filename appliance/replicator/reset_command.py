"""``appliance reset``."""

import argparse
import asyncio
from functools import partial

from appliance.failover.command import add_options, perform
from appliance.replicator.model.position_change import PLACES, Place
from appliance.replicator.reset import reset
from appliance.runtime.command import Command, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings


def _options(command: argparse.ArgumentParser) -> None:
    add_options(command)
    command.add_argument("--partition", type=int, metavar="N", help="only this partition of each topic")
    command.add_argument("--to", required=True, metavar="WHERE", help=PLACES)


async def _reset(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    place = Place.parse("--to", parsed.to)
    return await perform(settings, parsed, stopping, partial(reset, place=place, number=parsed.partition))


RESET = Command(
    "Sets where copying goes on. Forwards, the offsets that are left out go to the gap ledger. Backwards, records are "
    "copied again, behind those that the copy holds. Both are printed by number first. A topic that is promoted, or on "
    "its way, is refused. Killed anywhere, the same command again ends it at the same offsets.",
    with_settings(Role.REPLICATOR, _reset),
    _options,
)
