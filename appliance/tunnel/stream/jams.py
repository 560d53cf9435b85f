"""Resets jammed connections before what they hold exceeds the memory that a container has for them.

The bytes that wait in this process have a budget of their own (``memory``). The kernel's buffers have no bound but one
for each socket, some MiB, and count as the container's too: a peer that reads fast until they have grown, and then no
more, makes a few hundred connections hold gigabytes. Smaller buffers would cost every long line its speed. So all that
is held is summed up now and then; beyond ``HELD_MAX`` the jammed ones are reset, those that hold most first. A
connection whose bytes move is not: the kernel itself gives it smaller buffers when memory is short.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from appliance.tunnel.stream.tcp_channel import TcpChannel, open_channels

HELD_MAX = 192 * 2**20
"""Most bytes that all connections may hold, here and in the kernel."""

_CHECK_SECONDS = 0.5
_MEASURE_SECONDS = 1.0
"""Time over which their progress is measured, in seconds."""

_DRAINED_WITHIN = 60
"""Seconds: a connection is jammed if its bytes would take longer to drain, at their present rate."""

_AT_ONCE = 64
"""Sockets read in a row before the event loop goes on to other work."""

log = logging.getLogger("appliance.tunnel")

_Name = TypeVar("_Name")


@dataclass(frozen=True, slots=True)
class Held:
    """The bytes that a connection holds, and those acknowledged or received since it began."""

    size: int
    moved: int


async def reset_jammed() -> None:
    """Check the connections every half second, until cancelled."""
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        if await _held_by_all() > HELD_MAX:
            before = await _held_by_each()
            await asyncio.sleep(_MEASURE_SECONDS)
            _reset(jammed(before, await _held_by_each(), _MEASURE_SECONDS))


def jammed(before: Mapping[_Name, Held], now: Mapping[_Name, Held], seconds: float) -> dict[_Name, int]:
    """Connections to reset, with their bytes: the largest of the jammed ones, until no more than HELD_MAX is held."""
    excess = sum(held.size for held in now.values()) - HELD_MAX
    found: dict[_Name, int] = {}
    for name, held in sorted(now.items(), key=lambda item: item[1].size, reverse=True):
        if excess <= 0:
            break
        if name in before and (held.moved - before[name].moved) * _DRAINED_WITHIN < held.size * seconds:
            found[name] = held.size
            excess -= held.size
    return found


def _reset(found: Mapping[TcpChannel, int]) -> None:
    if found:
        fields = {"connections": len(found), "bytes": sum(found.values())}
        log.warning("connections reset: nobody read what they hold, and memory is short", extra={"fields": fields})
    for channel in found:
        channel.reset()


async def _held_by_all() -> int:
    total = 0
    for number, channel in enumerate(list(open_channels)):
        total += channel.held
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
    return total


async def _held_by_each() -> dict[TcpChannel, Held]:
    found = {}
    for number, channel in enumerate(list(open_channels)):
        found[channel] = Held(channel.held, channel.moved)
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
    return found
