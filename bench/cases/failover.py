"""Time of ``promote`` and of ``failover`` for a link of many topics and groups, while the replicator runs.

Each topic has ten partitions with a record in each, and each group has committed ten partitions. Each command gets new
clusters; before ``failover`` the source is killed. Each time is that of the command's whole process, from its start to
its end.
"""

import argparse
import asyncio
import functools
import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from appliance.errors import ProcessFailed
from appliance.kafka.client.group_offsets import Commit, commit_offsets
from appliance.settings.values import Side
from bench.lib.clusters import kafka_cluster, plain_pair
from bench.lib.filling import Load
from bench.lib.group_commits import coordinated, group_names
from bench.lib.our_replicator import environment, our_replicator
from bench.lib.row import LIMIT, Row
from bench.lib.setup import positive, setup
from bench.lib.topic_load import PARTITIONS, PATTERN, arrived, make, named
from testbed.cluster import Cluster

_SECONDS = 30.0
_HEAP_MEGABYTES = 2_048
_DEADLINE = 300.0
_ERROR_CHARACTERS = 2_000

log = logging.getLogger("appliance.bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench failover``."""
    parser.add_argument("--topics", type=positive, default=1_000, metavar="N", help="number of topics (%(default)s)")
    parser.add_argument("--groups", type=positive, default=2_000, metavar="N", help="number of groups (%(default)s)")
    parser.set_defaults(setup=functools.partial(setup, heap_megabytes=_HEAP_MEGABYTES))


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows.

    Raises:
        ProcessFailed, ToolMissing: a program did not run, or did not copy, or a command failed.
    """
    promoted, failed_over = [await _trial(name, arguments) for name in ("promote", "failover")]
    return rows(promoted, failed_over, arguments.topics, arguments.groups)


def rows(promoted: float, failed_over: float, topics: int, groups: int) -> list[Row]:
    """The times beside their limit."""
    size = f"{topics * PARTITIONS:,} partitions, {groups:,} groups"
    return [
        Row(f"promote, {size}", "s", promoted, LIMIT, _SECONDS, 1),
        Row(f"failover, {size}", "s", failed_over, LIMIT, _SECONDS, 1),
    ]


async def _trial(command: str, arguments: argparse.Namespace) -> float:
    """Copy all topics, and time the command."""
    topics = named(range(arguments.topics))
    load, follow = Load(0, topic=PATTERN, partitions=PARTITIONS), {"REPLICA_GROUPS_REGEX": "bench-.*"}
    async with plain_pair(_HEAP_MEGABYTES) as pair:
        await make(pair.source, topics)
        await _commit(pair.source, topics, arguments.groups)
        async with our_replicator(pair, load, "1", follow) as copying:
            suffix = copying.topic.removeprefix(PATTERN)
            await arrived(pair.destination, [name + suffix for name in topics], copying.process)
            if command == "failover":
                await pair.source.kill(0)
            began = time.perf_counter()
            report = await _command(pair.directory, command, pair.directory / "ours1.sh")
            seconds = time.perf_counter() - began
    log.info("measured", extra={"fields": {"by": command, "seconds": f"{seconds:.1f}", "kept": report["kept"]}})
    return seconds


async def _commit(cluster: Cluster, topics: Sequence[str], count: int) -> None:
    """Make that many groups, and let each commit the record of each partition of one of the topics.

    Raises:
        Unreachable, BrokerBusy, BrokerRefused: the cluster did not commit the offsets.
    """
    async with kafka_cluster(cluster, Side.SOURCE) as source:
        groups = await coordinated(source, group_names(count))
        commits = {
            group: {(topics[n % len(topics)], partition): Commit(1) for partition in range(PARTITIONS)}
            for n, group in enumerate(groups)
        }
        for error in (await commit_offsets(source, commits)).values():
            raise error


async def _command(directory: Path, command: str, env_file: Path) -> dict[str, object]:
    """The report of a command that has succeeded.

    Raises:
        ProcessFailed: it did not succeed.
    """
    line = [sys.executable, "-m", "appliance.cli", command, "--env-file", str(env_file), "--yes", "--json"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *line, env=environment(os.environ, directory), stdout=pipe, stderr=pipe
    )
    try:
        async with asyncio.timeout(_DEADLINE):
            printed, errors = await process.communicate()
    except TimeoutError as error:
        raise ProcessFailed(f"{command} did not end within {_DEADLINE:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ProcessFailed(f"{command} failed: {errors.decode()[-_ERROR_CHARACTERS:]}")
    report: dict[str, object] = json.loads(printed)
    return report
