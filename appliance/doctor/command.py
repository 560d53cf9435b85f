"""``appliance doctor``: runs the steps of one VM and prints the diagnosis; the exit code says whether a step failed."""

import argparse
import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from appliance.clock import epoch_seconds, monotonic
from appliance.doctor import destination_side, source_side
from appliance.doctor.destination_side import DestinationVm
from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.order_side import OrderVm, steps
from appliance.doctor.source_side import SourceVm
from appliance.doctor.step import SETTINGS, Result, Step, blocked, failed, passed, run_steps
from appliance.errors import Interrupted, SettingsError
from appliance.output import say_json
from appliance.runtime import log
from appliance.runtime.background import unless_stopped
from appliance.runtime.command import Command, add_json
from appliance.settings.env_file import read_order, read_settings
from appliance.settings.order_values import OrderSettings
from appliance.settings.role import Role
from appliance.settings.values import LogFormat, LogSettings, Settings, Side
from appliance.tables import show
from appliance.timestamps import utc
from appliance.tunnel.model.connect import Timeouts


class _Examined(Protocol):
    link: str

    async def close(self) -> None: ...


_ORDER = "order"
_Side = Side | Literal["order"]
_Vm = TypeVar("_Vm", bound=_Examined)


async def run_doctor(
    side: Side | Literal["order"],
    settings_file: Path,
    process: Mapping[str, str],
    as_json: bool,
    stopping: asyncio.Event,
) -> int:
    """Run the steps and print the diagnosis; the exit code is 0 when no step has failed."""
    log.configure(LogSettings(LogFormat.TEXT, "error"))
    report = await unless_stopped(stopping, examine(side, settings_file, process))
    if report is None:
        raise Interrupted("stopped before the end: there is no diagnosis")
    if as_json:
        say_json(report.as_json())
    else:
        show(report.as_table(), *report.remarks())
    return 0 if report.well else 1


async def examine(
    side: _Side, settings_file: Path, process: Mapping[str, str], timeouts: Timeouts | None = None
) -> Diagnosis:
    """Try the path from one VM; faults of the settings are the first step's."""
    began, timeouts = utc(epoch_seconds()), timeouts or Timeouts()

    if not isinstance(side, Side):
        return Diagnosis(side, began, await _examine_order(settings_file, process, timeouts))

    def settings() -> Settings:
        return _settings(side, settings_file, process)

    if side is Side.SOURCE:
        results = await _run(lambda: SourceVm(settings(), settings_file, timeouts), source_side.STEPS)
    else:
        results = await _run(lambda: DestinationVm(settings(), settings_file, timeouts), destination_side.STEPS)
    return Diagnosis(side, began, results)


async def _examine_order(settings_file: Path, process: Mapping[str, str], timeouts: Timeouts) -> tuple[Result, ...]:
    """The results on a VM of a total order, whose steps follow from its clusters."""

    def settings() -> OrderSettings:
        return read_order(settings_file, Role.DESTINATION | Role.REPLICATOR, process)

    own: tuple[Step[OrderVm], ...] = ()
    with contextlib.suppress(SettingsError):
        own = steps(settings())
    return await _run(lambda: OrderVm(settings(), settings_file, timeouts), own)


async def _run(make: Callable[[], _Vm], steps: Sequence[Step[_Vm]]) -> tuple[Result, ...]:
    began = monotonic()
    try:
        vm = make()
    except SettingsError as error:
        unread = Result(SETTINGS, failed(str(error), "correct these settings"), monotonic() - began)
        return (unread, *blocked(steps, unread))
    read = Result(SETTINGS, passed(f"link {vm.link}"), monotonic() - began)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(vm.close)
        return (read, *await run_steps(steps, vm))


def _settings(side: Side, settings_file: Path, process: Mapping[str, str]) -> Settings:
    """The settings as this VM needs them."""
    role = Role.SOURCE if side is Side.SOURCE else Role.DESTINATION | Role.REPLICATOR
    return read_settings(settings_file, role, process)


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "side",
        choices=[*(side.value for side in Side), _ORDER],
        help="the VM on which it runs; the steps of the destination cover the whole path, through the tunnel, those of "
        "order the paths to all clusters of a total order",
    )
    add_json(command, "a table")


async def _doctor(parsed: argparse.Namespace, stopping: asyncio.Event) -> int:
    """Run without reading settings first: the first step reports their faults."""
    side: _Side = "order" if parsed.side == _ORDER else Side(parsed.side)
    return await run_doctor(side, parsed.env_file, os.environ, parsed.json, stopping)


DOCTOR = Command(
    "Tries the path step by step, from the settings to the last permission, as seen from one of the VMs, and "
    "names the remedy of a failed step; later steps that need it are not tried. It may run at any time beside the "
    "other commands, and leaves nothing behind. Exit code 0 when the path works, 1 when it does not.",
    _doctor,
    _add_options,
)
