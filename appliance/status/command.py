"""``appliance status``: the snapshot at the terminal, once or repeatedly; it needs no running replicator."""

import argparse
import asyncio
import contextlib
import json
from collections.abc import Callable

import aiohttp
from rich.live import Live

from appliance.clock import now_ms
from appliance.errors import Interrupted, Unreachable
from appliance.link.handle import Link
from appliance.link.model.topic_choice import add_topic_options, among, takes
from appliance.output import say_json
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command, add_json, with_settings
from appliance.runtime.local_pages import dialled, json_object, page_at
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.status.model.document import STALE_SECONDS, document
from appliance.status.model.running import Running, read_running
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.table import rendered
from appliance.status.watcher import Watcher
from appliance.tables import show, terminal
from appliance.timestamps import milliseconds

_BETWEEN_TWO = 1.0
"""Seconds between the first two collections: rates and held partitions show only from two."""
_AGAIN = 2.0

Show = Callable[[Snapshot], None]


async def ask_running(settings: Settings, session: aiohttp.ClientSession) -> Running:
    """The knowledge of this VM's running replicator, asked on CONSOLE_LISTEN; else the reason why it is unknown."""
    at = settings.console.listen
    if at.port == 0:
        return Running(unknown="CONSOLE_LISTEN has port 0, so nobody can know where to ask")
    where = f"CONSOLE_LISTEN={dialled(at)}"
    try:
        status, body = await page_at(at, "/status", session)
    except Unreachable as error:
        return Running(unknown=f"no replicator of this VM answers on {where}: {error}")
    page = json_object(body)
    if status == 503 and "state" in page:
        return Running(unknown=f"the replicator at {where} has not looked at both clusters yet")
    try:
        if page["replicator"] == settings.replicator:
            old = now_ms() - milliseconds(page["at"]) > STALE_SECONDS * 1000
            return Running(unknown=f"the replicator at {where} is stuck") if old else read_running(page)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return Running(unknown=f"what answers on {where} is no replicator of this release")
    return Running(unknown=f"what answers on {where} is another link's replicator")


async def run_status(settings: Settings, topics: str, as_json: bool, watch: bool, stopping: asyncio.Event) -> int:
    """Collect and print; the exit code is 0 when all is copied or being copied. ApplianceError without such a topic."""
    async with Link.open(settings) as link, aiohttp.ClientSession() as session:
        watcher = Watcher(link, settings, running=lambda: ask_running(settings, session))
        code = await unless_stopped(stopping, _status(watcher, topics, as_json, watch))
        if code is not None:
            return code
        if not watch:
            raise Interrupted("stopped before the end")
        return 1 if watcher.snapshot is None else _exit_code(_chosen(watcher.snapshot, topics))


async def _status(watcher: Watcher, topics: str, as_json: bool, watch: bool) -> int:
    snapshot = await watcher.collect()
    if not (snapshot.source.unknown or snapshot.destination.unknown):
        await asyncio.sleep(_BETWEEN_TWO)
        snapshot = await watcher.collect()
    snapshot = _chosen(snapshot, topics)
    if not watch:
        _shower(as_json)(snapshot)
        return _exit_code(snapshot)
    with contextlib.ExitStack() as stack:
        show = _shower(as_json, stack)
        while True:
            show(snapshot)
            await asyncio.sleep(_AGAIN)
            snapshot = _chosen(await watcher.collect(), topics)


def _chosen(snapshot: Snapshot, topics: str) -> Snapshot:
    if not topics:
        return snapshot
    names = [topic.name for topic in snapshot.topics]
    if snapshot.source.unknown or snapshot.destination.unknown:
        return snapshot.only([name for name in names if takes(topics, name)])
    return snapshot.only(
        among(topics, names, "no such topic is copied; expected one of the source, see REPLICA_TOPICS_*")
    )


def _exit_code(snapshot: Snapshot) -> int:
    return 0 if snapshot.state.well else 1


def _shower(as_json: bool, watching: contextlib.ExitStack | None = None) -> Show:
    """A function that shows a snapshot; while watching, JSON goes in lines, and a table replaces the one before."""
    if as_json:
        indent = 2 if watching is None else None
        return lambda snapshot: say_json(json.dumps(document(snapshot), indent=indent))
    console = terminal()
    if watching is not None and console.is_terminal:
        live = watching.enter_context(Live(console=console, auto_refresh=False, vertical_overflow="visible"))
        return lambda snapshot: live.update(rendered(snapshot), refresh=True)
    return lambda snapshot: show(rendered(snapshot))


def _add_options(command: argparse.ArgumentParser) -> None:
    add_topic_options(command)
    add_json(command, "a table, with every partition")
    command.add_argument("--watch", action="store_true", help="show it again every 2 s until Ctrl-C")


STATUS = Command(
    "Shows for each topic and partition, from committed facts of both clusters: copied records, lag in records and "
    "seconds, rate, stops with reason and time, gaps, and the owner of each lane. It needs no running replicator. "
    "An unknown value is shown as unknown, never as 0. Exit code 0 if all is copied or being copied; 1 if something "
    "is stopped or unknown, or no replicator of the link has ever run.",
    with_settings(
        Role.REPLICATOR,
        lambda settings, parsed, stopping: run_status(settings, parsed.topic, parsed.json, parsed.watch, stopping),
    ),
    _add_options,
)
