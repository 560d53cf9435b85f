"""Measures on this machine, and prints our figures beside a peer's or a limit."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from appliance.errors import ApplianceError
from appliance.output import say_error
from appliance.runtime import log
from appliance.settings.values import LogFormat, LogSettings
from appliance.tables import show
from bench.cases import lanes, latency, offsets, order, recovery, replicate, topics, transform, tunnel, verify, wan
from bench.lib import plot
from bench.lib.row import Row, as_json, as_table
from bench.lib.setup import setup

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Benchmark(Protocol):
    """A module: its docstring, its options, and the measurement."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    async def run(self, arguments: argparse.Namespace) -> list[Row]: ...


_BENCHMARKS: dict[str, tuple[_Benchmark, str]] = {
    "replicate": (replicate, "rate of our replicator beside other programs and the limit"),
    "lanes": (lanes, "rate by lanes, executors and load; a change of lanes; the driver's cost"),
    "latency": (latency, "latency from producer to consumer, beside MirrorMaker 2"),
    "offsets": (offsets, "exactness of the offsets of groups, beside MirrorMaker 2"),
    "order": (order, "latency and rate of a total order in three clusters, beside a plain link"),
    "recovery": (recovery, "time to recover from SIGKILL, and to hand over to a standby, beside MirrorMaker 2"),
    "plot": (plot, "one picture of several results of --json"),
    "topics": (topics, "start-up and cost of many topics, beside MirrorMaker 2"),
    "transform": (transform, "rate, cost and latency of SQL in flight, beside MirrorMaker 2"),
    "tunnel": (tunnel, "speed of our tunnel beside stunnel and no tunnel"),
    "verify": (verify, "rate of a verification by one process, and by Spark"),
    "wan": (wan, "rate over a line of 100 ms, beside MirrorMaker 2"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark and return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    parsed = _parser().parse_args(given)
    log.configure(LogSettings(LogFormat.TEXT, "info"))
    try:
        if parsed.plot:
            plot.require(parsed.plot)
        rows = asyncio.run(_until_signalled(parsed.run(parsed)))
        if isinstance(rows, int):
            return rows
        _print(rows, parsed.setup(given), parsed.json)
        if parsed.plot:
            plot.draw(rows, parsed.plot)
    except ApplianceError as error:
        say_error(f"bench {parsed.benchmark}", error)
        return error.exit_code
    return 0


def _print(rows: Sequence[Row], measured_on: Mapping[str, str], as_data: bool) -> None:
    if as_data:
        print(as_json(rows, measured_on))
        return
    show(as_table(rows))
    for about, fact in measured_on.items():
        print(f"{about}: {fact}")


async def _until_signalled(measuring: Coroutine[None, None, list[Row]]) -> list[Row] | int:
    """Run the benchmark; return its rows, or the exit code if a signal ends it. All its processes are ended then."""
    benchmark = asyncio.create_task(measuring, name="benchmark")
    signalled: list[int] = []

    def stop(number: int) -> None:
        if not signalled:
            signalled.append(number)
            benchmark.cancel()

    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        return await benchmark
    except asyncio.CancelledError:
        return 128 + signalled[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    benchmarks = parser.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    for name, (module, summary) in _BENCHMARKS.items():
        form = argparse.RawDescriptionHelpFormatter
        benchmark = benchmarks.add_parser(name, help=summary, description=module.__doc__, formatter_class=form)
        benchmark.add_argument("--json", action="store_true", help="print JSON instead of a table")
        benchmark.add_argument("--plot", type=Path, metavar="FILE", help="also draw the figures into a PNG file")
        benchmark.set_defaults(run=module.run, setup=setup)
        module.add_arguments(benchmark)
    return parser


if __name__ == "__main__":
    sys.exit(main())
