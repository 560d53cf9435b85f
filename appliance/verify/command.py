"""``appliance verify``: a progress bar on stderr while it runs, then a table or JSON on stdout."""

import argparse
import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from appliance.clock import epoch_seconds
from appliance.errors import Interrupted, ProcessFailed, SettingsError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.handle import Link
from appliance.link.model.topic_choice import add_topic_options
from appliance.output import say_json
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command, add_json, seconds, with_settings_by
from appliance.settings.env_file import read_either
from appliance.settings.order_values import OrderSettings
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.tables import cell, show, terminal
from appliance.timestamps import utc
from appliance.verify import verification
from appliance.verify.checker import Checker
from appliance.verify.collecting import Collector, Tally
from appliance.verify.collecting import Progress as Compared
from appliance.verify.global_order import verify_order
from appliance.verify.model.report import PartitionResult, VerificationReport
from appliance.verify.partition_sql import PartitionSql
from appliance.verify.resume_file import ResumeFile
from appliance.verify.work import Job, offsets_of
from appliance.version import VERSION

if TYPE_CHECKING:
    from appliance.verify.fan_out import SparkVerification

log = logging.getLogger("appliance.verify")

_AUTO, _YES, _NO = "auto", "yes", "no"
_MUCH = 4_000_000
"""Source offsets from which on a Spark cluster verifies by itself: the start of Spark takes as long as two million."""
_MUCH_SQL = 1_000_000
"""The same in local mode, where records have passed SQL."""


async def verify(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    """Verify and print; the exit code is 0 when every partition is equal."""
    if parsed.order and not isinstance(settings, OrderSettings):
        raise SettingsError(["--global: expected GLOBAL_CLUSTERS: these settings are those of a link"])
    work = verify_order(settings, parsed) if isinstance(settings, OrderSettings) else _verify(settings, parsed)
    report = await unless_stopped(stopping, work)
    if report is None:
        resumable = f"; what was found is in {parsed.resume}" if parsed.resume else ""
        raise Interrupted(f"stopped before the end: nothing is verified{resumable}")
    if parsed.json:
        say_json(report.as_json())
    else:
        show(report.as_table(), *map(cell, report.remarks()))
    return 0 if report.well else 1


async def _verify(settings: Settings, parsed: argparse.Namespace) -> VerificationReport:
    ids = {"source": settings.source.cluster_id, "destination": settings.destination.cluster_id}
    asked = {"topics": sorted(parsed.topic.split("\n")) if parsed.topic else [], "began": utc(epoch_seconds())}
    header = {"release": VERSION, "link": settings.replicator, **ids, **asked}
    clock = asyncio.get_running_loop().time
    deadline = clock() + parsed.wait
    async with Link.open(settings) as link:
        with _progress() as progress:
            run = verification.Verification(link)
            plan = await run.plan(parsed.topic)
            sql = await run.sql(plan)
            file, tally = ResumeFile(parsed.resume, header), Tally(plan.jobs, progress)
            collector = Collector(plan.jobs, file, tally)
            async with _spark(settings, parsed, plan.jobs, sql) as spark:
                checker = run.checker(sql, spark.own.evaluate if spark and spark.own else None)
                if spark is None or not spark.room:
                    await _check_here(checker, collector, tally, deadline - clock())
                else:
                    await collector.divide(checker)
                    await spark.check(collector.begin(), deadline - clock(), collector.found)
            results = await run.ended(plan, collector.results, deadline)
            file.end()
    return VerificationReport(ids["source"], ids["destination"], file.began, utc(epoch_seconds()), results)


async def _check_here(checker: Checker, collector: Collector, tally: Tally, wait: float) -> None:
    """Verify what is left in this process."""
    further = collector.begin()

    def found(job: Job, result: PartitionResult) -> None:
        further.extend(collector.found(job, result))

    while further:
        jobs, further = further, []
        await checker.check(jobs, wait, found, tally.reached)


@contextlib.asynccontextmanager
async def _spark(
    settings: Settings, parsed: argparse.Namespace, jobs: Collection[Job], sql: Mapping[Partition, PartitionSql]
) -> "AsyncIterator[SparkVerification | None]":
    """Spark, if it is to verify, or to evaluate SQL."""
    shared, by_itself = _is_shared(settings, parsed, jobs, has_sql=bool(sql)), parsed.spark == _AUTO
    if parsed.spark == _YES and not shared:
        log.warning("this process verifies alone: its Spark makes the records again that have passed SQL")
    async with contextlib.AsyncExitStack() as stack:
        spark = None
        if shared or sql:
            from appliance.verify.spark import spark_verification  # loads PySpark, which few verifications need

            try:
                offsets = offsets_of(jobs)
                starting = spark_verification(settings, parsed.env_file.absolute(), sql, offsets=offsets, shared=shared)
                spark = await stack.enter_async_context(starting)
            except ProcessFailed as error:
                if sql or not by_itself:
                    raise
                log.warning(f"this process verifies alone: {error}")
        yield spark


def _is_shared(settings: Settings, parsed: argparse.Namespace, jobs: Collection[Job], *, has_sql: bool) -> bool:
    """True if the tasks of Spark are to verify: as wished, else if there is much to read for several processors.

    SQL has a Spark in any case, on this host, and needs more time of a processor for each record.
    """
    engine, offsets = settings.engine, offsets_of(jobs)
    if not has_sql:
        return parsed.spark == _YES or (parsed.spark == _AUTO and engine.in_a_cluster and offsets >= _MUCH)
    by_itself = parsed.spark == _AUTO and engine.task_count > 1 and offsets >= _MUCH_SQL
    return not engine.in_a_cluster and (parsed.spark == _YES or by_itself)


@contextlib.contextmanager
def _progress() -> Iterator[Compared]:
    """A bar on stderr, if that is a terminal."""
    bar = Progress(
        TextColumn("comparing"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=terminal(file=sys.stderr),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _add_options(command: argparse.ArgumentParser) -> None:
    add_topic_options(command)
    add_json(command, "a table")
    command.add_argument(
        "--global", dest="order", action="store_true", help="T-global of all clusters, and T: as GLOBAL_CLUSTERS says"
    )
    command.add_argument(
        "--wait",
        type=seconds,
        default=10.0,
        metavar="SECONDS",
        help="seconds in which the destination may catch up with the source's present end (default: 10)",
    )
    command.add_argument(
        "--spark",
        choices=[_AUTO, _YES, _NO],
        default=_AUTO,
        help="share the work out by Spark, at SPARK_MASTER (default: if there is much to read, in a cluster or on this "
        "host of what SQL has made)",
    )
    command.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="keep in FILE what is verified, and go on from there if an earlier run with FILE was ended",
    )


VERIFY = Command(
    "Reads every copied topic at the source up to its present end, and its copy, and compares them: key, value, "
    "headers, time and place of each record. Exit code 0 when the copies are equal as far as both sides still keep "
    "them; 1 when one is behind, differs, is missing or cannot be read.",
    with_settings_by(read_either, Role.REPLICATOR, verify),
    _add_options,
)
