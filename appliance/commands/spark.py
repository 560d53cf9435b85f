"""``appliance spark``: a part of a Spark cluster, to copy on several hosts."""

import argparse
import asyncio

from appliance.runtime.command import Command, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.spark.standalone import Part, run_part


def _spark_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("part", choices=["master", "worker"], help="which part of the cluster this process is")
    command.add_argument("--cores", type=int, metavar="N", help="how many tasks a worker takes at once (default: all)")
    command.add_argument("--host", metavar="ADDRESS", help="at which a worker is reached (default: by SPARK_MASTER)")


async def _spark(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    part = Part(parsed.part)
    return await run_part(settings.engine, part, parsed.cores, parsed.host, parsed.env_file.resolve(), stopping)


SPARK = Command(
    "Runs a Spark master at SPARK_MASTER=spark://host:port, or a worker of it on a host that copies. "
    "Each host needs the same settings except its own addresses, and runs `appliance destination` too.",
    with_settings(Role.REPLICATOR, _spark),
    _spark_options,
)
