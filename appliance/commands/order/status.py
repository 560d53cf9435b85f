"""``appliance order status``: who is home, what each cluster has, and what needs an operator."""

import argparse
import asyncio
import json

from appliance.order.handle import OrderHandle
from appliance.order.model.shown import document, rendered
from appliance.output import say_json
from appliance.runtime.command import Command, add_json, until_stopped, with_settings_by
from appliance.settings.env_file import read_order
from appliance.settings.order_values import OrderSettings
from appliance.settings.role import Role
from appliance.tables import show


async def status(settings: OrderSettings, parsed: argparse.Namespace, _: asyncio.Event) -> int:
    """Read all clusters, and print; the exit code is 0 when all is ordered or being ordered."""
    async with OrderHandle.open(settings) as order:
        view = await order.view()
    if parsed.json:
        say_json(json.dumps(document(view), indent=2))
    else:
        show(rendered(view))
    return 0 if view.state.well else 1


def _add_options(command: argparse.ArgumentParser) -> None:
    add_json(command, "a table, with every partition")


STATUS = Command(
    "Shows from committed facts of all clusters who is home since when, each cluster's promise, the records of its "
    "T-global and those that it lacks, and what waits to be ordered. It needs no running process. What cannot be read "
    "now is shown as unknown, never as 0. Exit code 0 if all is ordered or being ordered; 1 if there is no home, or "
    "something is stopped, silent, unknown or alone.",
    until_stopped(with_settings_by(read_order, Role.REPLICATOR, status)),
    _add_options,
)
