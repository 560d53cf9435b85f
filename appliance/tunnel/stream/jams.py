"""Resets jammed connections before what they hold exceeds the memory that a container has for them.

What waits in this process has a bound of its own (``waiting``). The kernel's buffers have none but its own for each
socket, some MiB, and count as the container's too: a peer that reads fast until they have grown, and then no more,
makes a few hundred connections hold gigabytes. Smaller buffers would cost every long line its speed. So all that is
held is looked at now and then; beyond ``HELD_MAX`` the jammed ones are reset, those that hold most first. A connection
whose bytes move is not: the kernel itself gives it smaller buffers when memory is short.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from appliance.tunnel.stream.tcp_channel import TcpChannel, open_channels

HELD_MAX = 192 * 2**20
"""Bytes that all connections may hold, here and in the kernel."""

_LOOK_SECONDS = 0.5
_WATCH_SECONDS = 1.0
"""How long it is watched whether they move."""

_DRAINED_WITHIN = 60
"""Seconds: a connection is jammed if what it holds would take longer, at the pace at which its bytes move."""

_AT_ONCE = 64
"""Sockets that are looked at before the rest of the process has its turn."""

log = logging.getLogger("appliance.tunnel")

_Name = TypeVar("_Name")


@dataclass(frozen=True, slots=True)
class Held:
    """The bytes that a connection holds, and those that its kernel has got rid of, or got, since it began."""

    size: int
    moved: int


async def reset_jammed() -> None:
    """Look, for ever."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        if await _held_by_all() > HELD_MAX:
            before = await _held_by_each()
            await asyncio.sleep(_WATCH_SECONDS)
            _reset(jammed(before, await _held_by_each(), _WATCH_SECONDS))


def jammed(before: Mapping[_Name, Held], now: Mapping[_Name, Held], seconds: float) -> dict[_Name, int]:
    """Those to be reset, with what they hold: of the jammed ones the largest, until no more than HELD_MAX is held."""
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
