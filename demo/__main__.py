"""``bin/demo``: the whole appliance between two real clusters on this machine, or one order in three of them.

Exit codes: 0 when both sides are equal, 1 when they differ or something failed, 2 for bad usage.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from appliance.command_line import Parser
from appliance.errors import ApplianceError
from appliance.output import say, say_error, say_json
from appliance.tables import show
from demo.display import Display, display, hints
from demo.input import RECORDS_MIN
from demo.order_report import OrderReport
from demo.order_scenario import OrderScenario
from demo.report import DemoReport
from demo.running_link import RunningLink
from demo.running_order import RunningOrder
from demo.scenario import Scenario
from testbed.rehearsal import kafka_installation

_DESCRIPTION = """\
Starts two Kafka clusters on loopback and the appliance between them, and produces records of every kind. Kills the
replicator in the middle, starts it again, and compares both sides record by record. With --global it starts three
clusters with one total order, and compares them after the home was killed, came back and moved, and a way was cut.
"""
_RECORDS = 200_000
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.order and (options.keep or options.records is not None):
        parser.error("--global takes neither --keep nor --records")
    try:
        return asyncio.run(_until_signalled(options))
    except ApplianceError as error:
        say_error("demo", error)
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="demo", description=_DESCRIPTION)
    parser.add_argument("--records", type=_records, metavar="N", help="records (default: 200000)")
    parser.add_argument(
        "--global", dest="order", action="store_true", help="one total order in three clusters, in about two minutes"
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument(
        "--keep", action="store_true", help="leave everything running until Ctrl-C, and print commands to look at it"
    )
    return parser


def _records(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < RECORDS_MIN:
        raise argparse.ArgumentTypeError(f"expected a number from {RECORDS_MIN} on")
    return int(text)


async def _until_signalled(options: argparse.Namespace) -> int:
    """Run the demo until it ends or the first signal; return the exit code. Later signals are ignored."""
    demo = asyncio.create_task(_order(options) if options.order else _demo(options), name="demo")
    signalled: list[int] = []

    def stop(number: int) -> None:
        if not signalled:
            signalled.append(number)
            demo.cancel()

    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        return await demo
    except asyncio.CancelledError:
        return 128 + signalled[0]


async def _demo(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="replicator-demo-") as directory:
        async with RunningLink(Path(directory)) as link:
            with display() as shown:
                await _find_kafka(shown)
                report = await Scenario(link, options.records or _RECORDS, shown).run()
            exit_code = _tell(report, options.json)
            if options.keep:
                await _keep(link)
    return exit_code


async def _order(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="replicator-demo-") as directory:
        async with RunningOrder(Path(directory)) as order:
            with display() as shown:
                await _find_kafka(shown)
                report = await OrderScenario(order, shown).run()
            return _tell(report, options.json)


async def _find_kafka(shown: Display) -> None:
    with shown.step("looking for Kafka, which is downloaded once on each machine"):
        await kafka_installation()


def _tell(report: DemoReport | OrderReport, as_json: bool) -> int:
    if as_json:
        say_json(report.as_json())
    else:
        show(report.as_table())
    say(*report.complaints(), error=True)
    return 0 if report.clean else 1


async def _keep(link: RunningLink) -> None:
    """Wait for the first signal; raise when a process ends."""
    page = await link.appliances.start_control_center()
    say(*hints(link, page).splitlines(), error=True)
    try:
        await link.watch()
    except asyncio.CancelledError:
        return


if __name__ == "__main__":
    sys.exit(main())
