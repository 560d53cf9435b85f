"""Our tunnel beside stunnel 5, and both beside a direct connection; all on loopback, on the same cores.

The sender, both ends and the target share the machine, so the total cost of a byte is measured. Each round measures all
three. Figures are medians of the rounds; ``added`` is the difference to the direct connection of the same round. Both
tunnels have TLS 1.3 with one cipher suite, certificates at both ends, and a full handshake for every connection. The
flood by a stranger comes last. The last flood of all is at stunnel, because stunnel continues with the handshakes long
after the stranger has left.
"""

import argparse
import asyncio
import contextlib
import resource
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.lib.procfs import busy_seconds, memory
from bench.lib.progress import progress
from bench.lib.row import LIMIT, Row
from bench.lib.running import LOOPBACK
from bench.lib.setup import add_number, whole
from bench.lib.tunnel_load import Latency, connected, idle, latency, streamed
from bench.lib.tunnel_ours import our_tunnel
from bench.lib.tunnel_stunnel import stunnel, stunnel_program
from bench.lib.tunnel_ways import Way, target
from testbed.tasks import in_thread

_OURS, _THEIRS, _DIRECT = "our tunnel", "stunnel", "direct"
_STREAMS = 8
_IDLE_LIMIT = 64.0
_STRANGERS_LIMIT, _HELLO_LIMIT = 200_000.0, 200.0
"""Microseconds."""
_KIBIBYTE = 1024
_WARMING_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Trial:
    """One round on one path: bytes a second of one stream and of several, connections a second, latency."""

    one: float
    several: float
    connections: float
    latency: Latency


class UnderFlood(NamedTuple):
    """One path during a stranger's flood of hellos, in microseconds.

    ``p99`` is the latency of an echo, and ``hello`` the server's processor time for one hello.
    """

    p99: float
    hello: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench tunnel``."""
    add_number(parser, "--rounds", 5, "rounds, 1 to 100", kind=whole(1, 100))
    add_number(parser, "--seconds", 1.0, "seconds of each measurement")
    add_number(parser, "--connections", 1000, "idle connections, 1 to 4000", kind=whole(1, 4000))


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    stunnel_program()
    _allow_files()
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        port = await stack.enter_async_context(target(directory))
        ours, cipher = await stack.enter_async_context(our_tunnel(directory, port))
        theirs = await stack.enter_async_context(stunnel(directory, port, cipher))
        progress("tunnels ready", tls=cipher.version, cipher=cipher.suite)
        ways = {_OURS: ours, _THEIRS: theirs, _DIRECT: Way((LOOPBACK, port))}
        # This comes first, because a process would reuse memory that streams have left, and connections would seem
        # cheaper.
        costs = {name: await _idle_costs(ways[name], arguments.connections) for name in (_OURS, _THEIRS)}
        for way in ways.values():
            await _trial(way, _WARMING_SECONDS)
        rounds = [await _round(ways, arguments.seconds) for _ in range(arguments.rounds)]
        flooded = [await _under_flood(ours, arguments.seconds) for _ in range(arguments.rounds)]
        floods = {_OURS: flooded, _THEIRS: [await _under_flood(theirs, arguments.seconds)]}
    return rows(rounds, floods, costs[_OURS], costs[_THEIRS])


def _allow_files() -> None:
    """Raise the limit of open files: an idle connection needs two at each end of a tunnel, and one here."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _round(ways: Mapping[str, Way], seconds: float) -> Mapping[str, Trial]:
    trials = {}
    for name, way in ways.items():
        trials[name] = await _trial(way, seconds)
        progress("measured", way=name, **_fields(trials[name]))
    return trials


async def _trial(way: Way, seconds: float) -> Trial:
    at = way.entrance
    trial = Trial(
        await in_thread(lambda _: streamed(at, 1, seconds)),
        await in_thread(lambda _: streamed(at, _STREAMS, seconds)),
        await in_thread(lambda _: connected(at, seconds)),
        await in_thread(lambda _: latency(at, seconds)),
    )
    for process in way.processes:
        process.require_running()
    return trial


async def _under_flood(way: Way, seconds: float) -> UnderFlood:
    """The latency during a stranger's hellos, and the cost of one hello to an otherwise idle server."""
    flood = asyncio.create_task(_flood(way, seconds))
    beside = await in_thread(lambda _: latency(way.entrance, seconds))
    await flood
    before = busy_seconds(way.processes[-1].pid)
    hellos = await _flood(way, seconds)
    cost = 1e6 * (busy_seconds(way.processes[-1].pid) - before) / max(1, hellos)
    progress("strangers", p99=f"{beside.p99:.0f}us", hellos=hellos, each=f"{cost:.0f}us")
    return UnderFlood(beside.p99, cost)


async def _flood(way: Way, seconds: float) -> int:
    """Send a stranger's hellos as fast as possible, and return their number."""
    command = [sys.executable, "-m", "bench.lib.tunnel_strangers", str(way.server_port), str(seconds)]
    stranger = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    sent, _ = await stranger.communicate()
    return int(sent)


def _fields(trial: Trial) -> dict[str, str]:
    """The trial's fields in a progress line."""
    return {
        "one": f"{trial.one / 1e6:,.0f}MB/s",
        "several": f"{trial.several / 1e6:,.0f}MB/s",
        "connections": f"{trial.connections:,.0f}/s",
        "p50": f"{trial.latency.median:.0f}us",
        "p99": f"{trial.latency.p99:.0f}us",
    }


async def _idle_costs(way: Way, connections: int) -> tuple[float, ...]:
    """Return the memory of an idle connection in each of the way's processes, in KiB."""
    await in_thread(lambda _: connected(way.entrance, _WARMING_SECONDS))
    before = _shares(way)

    def shares_with_idle(_: threading.Event) -> Sequence[float]:
        with idle(way.entrance, connections):
            return _shares(way)

    during = await in_thread(shares_with_idle)
    costs = tuple((last - first) / connections for last, first in zip(during, before, strict=True))
    progress("idle", **{process.name: cost for process, cost in zip(way.processes, costs, strict=True)})
    return costs


def _shares(way: Way) -> Sequence[float]:
    return [memory(process.pid).share / _KIBIBYTE for process in way.processes]


def rows(
    rounds: Sequence[Mapping[str, Trial]],
    floods: Mapping[str, Sequence[UnderFlood]],
    our_idle: tuple[float, ...],
    their_idle: tuple[float, ...],
) -> list[Row]:
    """Return the medians of the rounds and of each way's floods, and the larger memory of an idle connection."""

    def row(name: str, unit: str, figure: Callable[[Mapping[str, Trial], str], float], peer: str) -> Row:
        ours, theirs = (statistics.median(figure(each, way) for each in rounds) for way in (_OURS, peer))
        return Row(name, unit, ours, peer, theirs)

    p99 = {way: statistics.median(flood.p99 for flood in own) for way, own in floods.items()}
    hello = {way: statistics.median(flood.hello for flood in own) for way, own in floods.items()}
    rates: list[tuple[str, str, Callable[[Mapping[str, Trial], str], float]]] = [
        ("one stream", "MB/s", lambda each, way: each[way].one / 1e6),
        (f"{_STREAMS} streams", "MB/s", lambda each, way: each[way].several / 1e6),
        ("new connections", "1/s", lambda each, way: each[way].connections),
    ]
    return [
        *(row(name, unit, figure, peer) for name, unit, figure in rates for peer in (_THEIRS, _DIRECT)),
        row("added latency p50", "us", lambda e, way: e[way].latency.median - e[_DIRECT].latency.median, _THEIRS),
        row("added latency p99", "us", lambda e, way: e[way].latency.p99 - e[_DIRECT].latency.p99, _THEIRS),
        Row("p99 beside strangers", "us", p99[_OURS], _THEIRS, p99[_THEIRS]),
        Row("p99 beside strangers", "us", p99[_OURS], LIMIT, _STRANGERS_LIMIT),
        Row("a stranger's hello", "us of processor", hello[_OURS], _THEIRS, hello[_THEIRS]),
        Row("a stranger's hello", "us of processor", hello[_OURS], LIMIT, _HELLO_LIMIT),
        Row("idle connection, destination", "KiB", our_idle[0], _THEIRS, their_idle[0]),
        Row("idle connection, source", "KiB", our_idle[1], _THEIRS, their_idle[1]),
        Row("idle connection, more expensive side", "KiB", max(our_idle), LIMIT, _IDLE_LIMIT),
    ]
