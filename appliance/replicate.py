"""``appliance replicate``: the replicator, with its status server and, where no Spark has started it, its own Spark."""

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.runtime.command import Command, with_settings
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings

if TYPE_CHECKING:
    from appliance.spark.spark_jvm import SparkJvm
    from appliance.spark.submitted import SubmittedJvm


def _replicate_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting to pass on to Spark, never a secret; repeatable",
    )


async def _run_replicator(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> None:
    """Run the replicator with its console. Java, the slowest part, starts while the rest is imported."""
    from appliance.settings.engine import Bound
    from appliance.spark.passed_conf import passed_conf, secrets_of
    from appliance.spark.tempdir import tempdir

    def bytes_per_second() -> int:
        return read_settings(parsed.env_file, Role.REPLICATOR, os.environ).engine.max_bytes_per_second

    passed = passed_conf(parsed.conf, frozenset(secrets_of(settings)))
    bound = Bound(settings.engine.max_bytes_per_second, bytes_per_second)
    with tempdir(settings.replicator) as directory:
        async with _java(settings, parsed.env_file.absolute(), directory, passed) as (settings, jvm):
            from appliance.audit.model.progress import AuditProgress
            from appliance.clock import now_ms
            from appliance.driver.composition import Composition
            from appliance.engine.problem_log import ProblemLog
            from appliance.groups.model.newest_groups import NewestGroups
            from appliance.link.client.clusters import destination_cluster, source_cluster
            from appliance.link.client.membership import membership
            from appliance.link.model.problems import STANDBY
            from appliance.status.service import status_server

            newest, audit, problems = NewestGroups(), AuditProgress(settings.audit.path), ProblemLog(clock=now_ms)
            async with source_cluster(settings) as source, destination_cluster(settings) as destination:
                tell = functools.partial(problems.note, STANDBY)
                member = membership(destination, settings.replicator, directory.name, tell)
                run = Composition(settings, source, destination, jvm, stopping, bound, newest, audit, problems, member)
                async with status_server(settings, bound, newest, audit, problems.open, member):
                    await run.run()


@contextlib.asynccontextmanager
async def _java(
    settings: Settings, env_file: Path, directory: Path, passed: Mapping[str, str]
) -> "AsyncIterator[tuple[Settings, SparkJvm | SubmittedJvm]]":
    """The JVM of Spark's driver, and the settings on its master: spark-submit's, or else a new one."""
    from appliance.spark.configuration import Application
    from appliance.spark.spark_jvm import spark_jvm

    application = Application(settings.engine, settings.replicator, env_file, passed, settings.transform.wanted)
    if all(os.environ.get(name) for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")):
        from appliance.spark.submitted import SubmittedJvm

        submitted = SubmittedJvm(os.environ, directory)
        yield dataclasses.replace(settings, engine=submitted.take(application)), submitted
    else:
        async with spark_jvm(application, directory) as jvm:
            yield settings, jvm


REPLICATE = Command(
    "Copies every topic that matches REPLICA_TOPICS_SOURCE_REGEX to <topic>.<REPLICA_TOPICS_DEST_SUFFIX>, or to "
    "<SOURCE_CLUSTER_ID>.<topic> with REPLICA_TOPICS_NAMING=prefix. "
    "It may be killed at any time and started anywhere: its positions are stored in the destination cluster.",
    with_settings(Role.REPLICATOR, _run_replicator),
    _replicate_options,
)
