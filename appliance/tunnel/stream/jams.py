"""Reset jammed connections before their bytes exceed the container's memory for them.

The bytes that wait in this process have a budget of their own (``memory``). The kernel's buffers count as the
container's memory too, but are bounded only for each socket, at some MiB: if a peer reads fast until they have grown,
and then stops, a few hundred connections hold gigabytes. Smaller buffers would slow every long line down. So the held
bytes are summed up regularly; beyond ``HELD_MAX`` the jammed connections are reset, the largest first. A connection
whose bytes move is kept: the kernel gives it smaller buffers when memory is short.
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
"""Sockets read in a row before the event loop turns to other work."""

log = logging.getLogger("appliance.tunnel")

_Name = TypeVar("_Name")


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The bytes that a connection holds, and those acknowledged or received since it began."""

    size: int
    moved: int


async def reset_jammed() -> None:
    """Check the connections every half second, until cancelled."""
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        if await _memory_of_all() > HELD_MAX:
            before = await _memory_of_each()
            await asyncio.sleep(_MEASURE_SECONDS)
            _reset(jammed(before, await _memory_of_each(), _MEASURE_SECONDS))


def jammed(before: Mapping[_Name, MemoryUse], now: Mapping[_Name, MemoryUse], seconds: float) -> dict[_Name, int]:
    """Connections to reset, with their bytes: the largest of the jammed ones, until no more than HELD_MAX is held."""
    excess = sum(use.size for use in now.values()) - HELD_MAX
    excessive: dict[_Name, int] = {}
    for name, use in sorted(now.items(), key=lambda item: item[1].size, reverse=True):
        if excess <= 0:
            break
        if name in before and (use.moved - before[name].moved) * _DRAINED_WITHIN < use.size * seconds:
            excessive[name] = use.size
            excess -= use.size
    return excessive


def _reset(channels: Mapping[TcpChannel, int]) -> None:
    if channels:
        fields = {"connections": len(channels), "bytes": sum(channels.values())}
        log.warning("connections reset: nobody read what they hold, and memory is short", extra={"fields": fields})
    for channel in channels:
        channel.reset()


async def _memory_of_all() -> int:
    total = 0
    for number, channel in enumerate(list(open_channels)):
        total += channel.memory
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
    return total


async def _memory_of_each() -> dict[TcpChannel, MemoryUse]:
    sizes = {}
    for number, channel in enumerate(list(open_channels)):
        sizes[channel] = MemoryUse(channel.memory, channel.moved)
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
    return sizes
