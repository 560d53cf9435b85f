"""A command of ``bin/appliance``, as its folder declares it in its own ``command.py``."""

import argparse
import asyncio
import math
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from appliance.errors import Interrupted
from appliance.runtime import log
from appliance.runtime.background import unless_stopped
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from appliance.settings.values import Settings

_Settings = TypeVar("_Settings", bound=Settings)

Run = Callable[[argparse.Namespace, asyncio.Event], Awaitable[int | None]]
"""Runs until it is done, or until the event is set; gives the exit code, None for 0."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the text of its help, its work, and its options in addition to ``--env-file``.

    ``loop`` makes its event loop; None is asyncio's. Without settings it has no ``--env-file`` either.
    """

    description: str
    run: Run
    add_options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    has_settings: bool = True


def with_settings(
    role: Role, run: Callable[[Settings, argparse.Namespace, asyncio.Event], Awaitable[int | None]]
) -> Run:
    """A command's work that reads the settings of ``role`` first, and logs as they say."""
    return with_settings_by(read_settings, role, run)


def with_settings_by(
    read: Callable[[Path, Role, Mapping[str, str]], _Settings],
    role: Role,
    run: Callable[[_Settings, argparse.Namespace, asyncio.Event], Awaitable[int | None]],
) -> Run:
    """The same with settings that ``read`` reads: a link's, an order's, or either."""

    async def read_and_run(parsed: argparse.Namespace, stopping: asyncio.Event) -> int | None:
        settings = read(parsed.env_file, role, os.environ)
        log.configure(settings.log)
        return await run(settings, parsed, stopping)

    return read_and_run


def add_json(command: argparse.ArgumentParser, instead: str = "lines") -> None:
    """Declare the option that every command has which prints a result."""
    command.add_argument("--json", action="store_true", help=f"print JSON instead of {instead}")


def until_stopped(run: Run, so: str = "stopped before the end") -> Run:
    """A run that Ctrl-C and SIGTERM cut off where it is, and what is said of it then."""

    async def cut_off(parsed: argparse.Namespace, stopping: asyncio.Event) -> int | None:
        async def code() -> int:
            return await run(parsed, stopping) or 0

        ended = await unless_stopped(stopping, code())
        if ended is None:
            raise Interrupted(so)
        return ended

    return cut_off


def seconds(text: str) -> float:
    """The number of seconds of an option: one that is no number, or has no end, would have a command wait for ever."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: expected a number of seconds, 0 or more")
    return number
