"""``appliance verify``: a progress bar on stderr while it runs, then a table or JSON on stdout."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from appliance.errors import ApplianceError
from appliance.link.client.clusters import destination_cluster, source_cluster
from appliance.link.model.naming import Naming
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command, with_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings, Start
from appliance.verify import verification
from appliance.verify.model.report import VerificationReport
from appliance.verify.sql import Session

_WIDTH = 1000
"""Columns of a table that is not shown at a terminal: wide enough that no line is broken."""


Sessions = Callable[[Settings, Path], AbstractAsyncContextManager[Any]]
"""Starts a session of Spark SQL, with the settings and their file."""


async def run_verify(
    settings: Settings,
    topics: Collection[str],
    as_json: bool,
    wait: float,
    stopping: asyncio.Event,
    session: Session | None = None,
) -> int:
    """Verify and print; the exit code is 0 when every partition is equal.

    Raises:
        ApplianceError: it was stopped before its end, or as ``Verification.run``.
    """
    report = await unless_stopped(stopping, _verify(settings, topics, wait, session))
    if report is None:
        raise ApplianceError("stopped before the end: nothing is verified")
    if as_json:
        print(report.as_json())
    else:
        _print(report)
    return 0 if report.well else 1


async def _verify(
    settings: Settings, topics: Collection[str], wait: float, session: Session | None
) -> VerificationReport:
    began = _now()
    async with source_cluster(settings) as source, destination_cluster(settings) as destination:
        latest = settings.topics.start is Start.LATEST
        with _progress() as progress:
            salt = settings.transform.salt
            run = verification.Verification(source, destination, Naming.of(settings), latest, progress, salt, session)
            verdicts = await run.run(topics, wait)
    return VerificationReport(settings.source.cluster_id, settings.destination.cluster_id, began, _now(), verdicts)


@contextlib.contextmanager
def _progress() -> Iterator[verification.Progress]:
    """A bar on stderr, if that is a terminal."""
    bar = Progress(
        TextColumn("comparing"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(report: VerificationReport) -> None:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    console.print(report.as_table())
    for remark in report.remarks():
        console.print(remark, markup=False, soft_wrap=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--topic", action="append", default=[], metavar="T", help="only this source topic; repeatable")
    command.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    command.add_argument(
        "--wait",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="seconds in which the destination may catch up with the source's present end (default: 10)",
    )


def verify_command(sessions: Sessions) -> Command:
    """``verify``; ``sessions`` starts Spark where records have passed SQL."""

    async def run(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
        def session() -> AbstractAsyncContextManager[Any]:
            return sessions(settings, parsed.env_file.resolve())

        return await run_verify(settings, parsed.topic, parsed.json, parsed.wait, stopping, session)

    return Command(
        "Reads every copied topic at the source up to its present end, and its copy, and compares them: key, value, "
        "headers, time and place of each record. Exit code 0 when the copies are equal as far as both sides still keep "
        "them; 1 when one is behind, differs, is missing or cannot be read.",
        with_settings(Role.REPLICATOR, run),
        _add_options,
    )
