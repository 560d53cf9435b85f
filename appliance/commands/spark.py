"""``appliance spark``: a part of a Spark cluster, to copy on several hosts."""

import argparse
import asyncio

from appliance.runtime.command import Command, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.spark.pod import run_executor
from appliance.spark.standalone import Part, run_part


def _spark_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("part", choices=["master", "worker", "executor"], help="which part this process is")
    command.add_argument("--cores", type=int, metavar="N", help="how many tasks a worker takes at once (default: all)")
    command.add_argument("--host", metavar="ADDRESS", help="at which a worker is reached (default: by SPARK_MASTER)")


async def _spark(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    if parsed.part == "executor":
        return await run_executor(parsed.env_file.absolute(), stopping)
    part = Part(parsed.part)
    return await run_part(settings.engine, part, parsed.cores, parsed.host, parsed.env_file.absolute(), stopping)


SPARK = Command(
    "Runs a Spark master at SPARK_MASTER=spark://host:port, or a worker of it on a host that copies. "
    "Each host needs the same settings except its own addresses, and runs `appliance destination` too. "
    "With SPARK_MASTER=k8s://... Spark makes pods, which run `executor`.",
    with_settings(Role.REPLICATOR, _spark),
    _spark_options,
)
