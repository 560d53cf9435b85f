"""``appliance reset``."""

import argparse
from functools import partial

from appliance.failover.command import Work, add_options, run_with
from appliance.replicator.model.position_change import PLACES, Place
from appliance.replicator.reset import reset
from appliance.runtime.command import Command


def _options(command: argparse.ArgumentParser) -> None:
    add_options(command, "only these source topics (default: all)")
    command.add_argument("--partition", type=int, metavar="N", help="only this partition of each topic")
    command.add_argument("--to", required=True, metavar="WHERE", help=PLACES)


def _work(parsed: argparse.Namespace) -> Work:
    return partial(reset, place=Place.parse("--to", parsed.to), number=parsed.partition)


RESET = Command(
    "Sets where copying goes on. Forwards, the offsets that are left out go to the gap ledger. Backwards, records are "
    "copied again, behind those that the copy holds. Both are printed by number first. A topic that is promoted, or on "
    "its way, is refused. Killed anywhere, the same command again ends it at the same offsets.",
    run_with(_work),
    _options,
)
