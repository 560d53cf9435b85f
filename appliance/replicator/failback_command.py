"""``appliance failback``."""

import argparse

from appliance.failover.command import add_options, run_of
from appliance.replicator.failback import failback
from appliance.runtime.command import Command


def _options(command: argparse.ArgumentParser) -> None:
    add_options(command)
    command.add_argument(
        "--allow-loss", action="store_true", help="leave out what producers wrote to the source during the failback"
    )


FAILBACK = Command(
    "Brings the records that promoted copies took back into their source topics, exactly once, and lets the link copy "
    "as before. Copies until nothing is left, so stop the producers at the copies first. What the source held and was "
    "never copied is printed, and stays in the source alone. Killed anywhere, the same command again goes on.",
    run_of(failback),
    _options,
)
