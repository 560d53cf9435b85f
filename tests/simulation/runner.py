"""Plays histories: ``python -m tests.simulation.runner FIRST COUNT [--faults a,b]``; prints the first that fails."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection
from typing import Protocol

from tests.simulation.faults import FAULTS
from tests.simulation.history import History, Outcome


def first_failure(first: int, count: int, faults: Collection[str] | None = None) -> Outcome | None:
    """The first of so many histories in which something does not hold; None when all hold."""
    for seed in range(first, first + count):
        outcome = History(seed, faults).run()
        if outcome.failure:
            return outcome
    return None


class Playable(Protocol):
    """A history, by its seed and its faults; None: by chance."""

    def run(self) -> Outcome:
        """Play it."""


Histories = Callable[[argparse.Namespace, int, Collection[str] | None], Playable]
"""Makes the history of a seed, as the command line asks for it."""


def main(text: str | None, faults_known: Collection[str], parser: argparse.ArgumentParser, of: Histories) -> int:
    """Play the histories of the command line, and print the first that fails."""
    parser.description = text
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--faults", help=f"befall each history: {','.join(faults_known)}; by default by chance")
    parser.add_argument("--trace", action="store_true", help="print the trace of the last history, failed or not")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets decides, too
        os.execvpe(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    began = time.perf_counter()
    faults = None if arguments.faults is None else tuple(filter(None, arguments.faults.split(",")))
    steps = commits = records = failed = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        outcome = of(arguments, seed, faults).run()
        steps, commits, records = steps + outcome.steps, commits + outcome.commits, records + outcome.records
        if outcome.failure:
            failed = 1
            break
    if failed or arguments.trace:
        print("\n".join(outcome.lines()))
    if failed:
        print(f"seed {outcome.seed}: {outcome.failure}")
        return 1
    took = time.perf_counter() - began
    print(f"{arguments.count} histories in {took:.1f} s: {steps} steps, {commits} commits, {records} records")
    return 0


if __name__ == "__main__":
    sys.exit(main(__doc__, FAULTS, argparse.ArgumentParser(), lambda _, seed, faults: History(seed, faults)))
