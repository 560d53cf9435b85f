"""``appliance failback``."""

import argparse

from appliance.commands.failback.failback import failback
from appliance.commands.run.runner import add_options, run_of
from appliance.runtime.command import Command


def _failback_options(command: argparse.ArgumentParser) -> None:
    add_options(command)
    command.add_argument(
        "--allow-loss",
        action="store_true",
        help="leave out what producers wrote to the source during the failback and what a copy does not have any more; "
        "let a source topic with LogAppendTime give new times to what is copied back",
    )
    command.add_argument(
        "--keep-diverged",
        action="store_true",
        help="copy what a source held and was never copied into replicator-SOURCE.TOPIC.diverged, beside it",
    )


FAILBACK = Command(
    "Brings the records that promoted copies took back into their source topics, exactly once, and lets the link copy "
    "as before. Copies until nothing is left, so stop the producers at the copies first. What the source held and was "
    "never copied is printed, and stays in the source alone, or is kept in a topic of its own as well. Killed "
    "anywhere, the same command again goes on.",
    run_of(failback),
    _failback_options,
)
