"""``appliance console``: the control center, until it is stopped."""

import argparse
import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from appliance.clock import monotonic
from appliance.console.access import Access, Right
from appliance.console.commands import Commands
from appliance.console.kept_history import KeptHistory
from appliance.console.peer_centers import PeerCenters, socket_of
from appliance.console.server import ConsoleServer
from appliance.console.serving import page_tls, serving
from appliance.console.tunnel import tunnel_fault, tunnel_view
from appliance.console.watch import LinkWatch
from appliance.link.handle import Link
from appliance.runtime.background import in_background
from appliance.runtime.command import Command, with_settings
from appliance.runtime.local_pages import page_at
from appliance.settings.engine import Bound
from appliance.settings.env_file import load, read_settings
from appliance.settings.one_topic import with_one_topic
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.status.command import ask_running
from appliance.status.model.snapshot import Snapshot
from appliance.status.watcher import Watcher

log = logging.getLogger("appliance.console")


async def run_console(settings: Settings, env_file: Path, process: Mapping[str, str], stopping: asyncio.Event) -> None:
    """Watch the link and serve the pages until ``stopping`` is set."""
    own, directory = settings.control_center, settings.control_center.links
    socket = socket_of(directory, settings.tunnel.link) if directory else None
    async with contextlib.AsyncExitStack() as stack:
        link = await stack.enter_async_context(Link.open(settings))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        bound = Bound(settings.engine.max_bytes_per_second, lambda: _present_bound(env_file, process))
        watcher = Watcher(link, settings, bound)

        async def collect() -> Snapshot:
            bound.read_again()
            return await watcher.collect()

        watch = LinkWatch(collect, lambda: ask_running(settings, session), lambda: tunnel_fault(settings, session))
        kept = KeptHistory(own.history, settings.tunnel.link, watch)
        stack.enter_context(kept.opened())
        commands = Commands(env_file)
        stack.push_async_callback(commands.close)
        server = ConsoleServer(
            settings,
            with_one_topic(load(env_file, process))[0],
            watch,
            commands,
            PeerCenters(directory, socket),
            Access({Right.OPERATOR: own.token, Right.VIEWER: own.viewer_token}, monotonic),
            lambda: tunnel_view(settings, session),
            lambda at: page_at(at, "/metrics", session),
        )
        tls = await stack.enter_async_context(page_tls(own))
        address = await stack.enter_async_context(serving(server.app, own.listen, socket, tls))
        log.info("listening", extra={"fields": {"address": str(address)}})
        failure = "the control center failed to {}"
        await stack.enter_async_context(in_background(log, failure, watch=watch.run, keep=kept.keep))
        await stopping.wait()


def _present_bound(env_file: Path, process: Mapping[str, str]) -> int:
    return read_settings(env_file, Role.REPLICATOR, process).engine.max_bytes_per_second


async def _console(settings: Settings, parsed: argparse.Namespace, stopping: asyncio.Event) -> None:
    await run_console(settings, parsed.env_file.absolute(), os.environ, stopping)


CONSOLE = Command(
    "Serves the control center on CONTROL_CENTER_LISTEN: a page that shows the link, and the part of Kafka Connect's "
    "REST interface that other consoles read. It asks both clusters, and needs no running replicator. With "
    "CONSOLE_TOKEN, or an operator's login, it also takes commands.",
    with_settings(Role.REPLICATOR | Role.CONSOLE, _console),
)
