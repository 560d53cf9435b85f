"""``bin/demo``: the whole appliance between two real clusters on this machine.

Exit codes: 0 when both sides are equal, 1 when they differ or something failed, 2 for bad usage.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from appliance.errors import ApplianceError
from appliance.output import say, say_error, say_json
from appliance.tables import show
from demo.display import display, hints
from demo.input import RECORDS_MIN
from demo.report import DemoReport
from demo.running_link import RunningLink
from demo.scenario import Scenario
from testbed.rehearsal import kafka_installation

_DESCRIPTION = """\
Starts two Kafka clusters on loopback and the appliance between them, and produces records of every kind. Kills the
replicator in the middle, starts it again, and compares both sides record by record.
"""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return asyncio.run(_until_signalled(options))
    except ApplianceError as error:
        say_error("demo", error)
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="demo", description=_DESCRIPTION)
    parser.add_argument("--records", type=_records, default=200_000, metavar="N", help="records (default: 200000)")
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
    demo = asyncio.create_task(_demo(options), name="demo")
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
                with shown.step("looking for Kafka, which is downloaded once on each machine"):
                    await kafka_installation()
                report = await Scenario(link, options.records, shown).run()
            exit_code = _tell(report, options.json)
            if options.keep:
                await _keep(link)
    return exit_code


def _tell(report: DemoReport, as_json: bool) -> int:
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
