"""Dial an address; the result is a channel."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import TypeVar

from appliance.errors import NameUnresolved, OutOfDescriptors, TimedOut, Unreachable
from appliance.tunnel.limits.connection_limit import EXHAUSTED
from appliance.tunnel.stream.tcp_channel import TcpChannel

_Kind = TypeVar("_Kind", bound=TcpChannel)


async def dial(hosts: Sequence[str], port: int, seconds: float, make: Callable[[], _Kind]) -> _Kind:
    """Connect to the first of ``hosts`` that answers, all of them within ``seconds``.

    Each host gets an equal share of the remaining time, so that a silent one does not use up that of the others.

    Raises:
        TimedOut: the last of them did not answer in time.
        OutOfDescriptors: this process is out of them.
        Unreachable: it refused, or there is none.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    failure = Unreachable("no address to dial")
    for left, host in zip(range(len(hosts), 0, -1), hosts, strict=True):
        try:
            return await _dial_one(host, port, (end - clock()) / left, make)
        except Unreachable as error:
            failure = error
    raise failure


async def _dial_one(host: str, port: int, seconds: float, make: Callable[[], _Kind]) -> _Kind:
    try:
        async with asyncio.timeout(seconds):
            _, channel = await asyncio.get_running_loop().create_connection(make, host, port)
    except TimeoutError as error:
        raise TimedOut(f"no answer from {host} port {port} within {seconds:.1f} s") from error
    except socket.gaierror as error:
        raise NameUnresolved(f"no address for {host}: {error.strerror}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        kind = OutOfDescriptors if error.errno in EXHAUSTED else Unreachable
        raise kind(f"{host} port {port}: {reason.lower()}") from error
    return channel
