"""``appliance adopt``."""

import argparse

from appliance.commands.adoption.adopt import adopt
from appliance.commands.adoption.finding import Choice
from appliance.commands.adoption.mirror_maker import MirrorMaker
from appliance.commands.adoption.model.plan import Allowed
from appliance.commands.adoption.model.report import AdoptionReport
from appliance.commands.run.operation import WAIT_SECONDS, Operation
from appliance.commands.run.plan import Plan, Work
from appliance.commands.run.runner import add_options, run_with
from appliance.runtime.command import Command, seconds


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
