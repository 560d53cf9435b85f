"""Measures on this machine, and prints our figures beside a peer's or a limit."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

from appliance.errors import ApplianceError
from appliance.output import say_error
from appliance.runtime import log
from appliance.settings.values import LogFormat, LogSettings
from appliance.tables import show
from bench.cases import (
    lanes,
    latency,
    offsets,
    recovery,
    replicate,
    topics,
    transform,
    tunnel,
    verify,
    wan,
)
from bench.lib import plot
from bench.lib.row import Row, as_json, as_table
from bench.lib.setup import setup

Run = Callable[[argparse.Namespace], Coroutine[None, None, list[Row]]]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BENCHMARKS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Run]] = {
    "replicate": ("rate of our replicator beside other programs and the limit", replicate.add_arguments, replicate.run),
    "lanes": (
        "rate by lanes, executors and load; a change of lanes; the driver's cost",
        lanes.add_arguments,
        lanes.run,
    ),
    "latency": ("latency from producer to consumer, beside MirrorMaker 2", latency.add_arguments, latency.run),
    "offsets": ("exactness of the offsets of groups, beside MirrorMaker 2", offsets.add_arguments, offsets.run),
    "recovery": ("time to recover from SIGKILL", recovery.add_arguments, recovery.run),
    "plot": ("one picture of several results of --json", plot.add_arguments, plot.run),
    "topics": ("start-up and cost of many topics, beside MirrorMaker 2", topics.add_arguments, topics.run),
    "transform": (
        "rate, cost and latency of SQL in flight, beside MirrorMaker 2",
        transform.add_arguments,
        transform.run,
    ),
    "tunnel": ("speed of our tunnel beside stunnel and no tunnel", tunnel.add_arguments, tunnel.run),
    "verify": ("rate of a verification by one process, and by Spark", verify.add_arguments, verify.run),
    "wan": ("rate over a line of 100 ms, beside MirrorMaker 2", wan.add_arguments, wan.run),
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
    for name, (summary, add_arguments, run) in _BENCHMARKS.items():
        text, form = sys.modules[run.__module__].__doc__, argparse.RawDescriptionHelpFormatter
        benchmark = benchmarks.add_parser(name, help=summary, description=text, formatter_class=form)
        benchmark.add_argument("--json", action="store_true", help="print JSON instead of a table")
        benchmark.add_argument("--plot", type=Path, metavar="FILE", help="also draw the figures into a PNG file")
        benchmark.set_defaults(run=run, setup=setup)
        add_arguments(benchmark)
    return parser


if __name__ == "__main__":
    sys.exit(main())
