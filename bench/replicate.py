"""How fast our replicator and MirrorMaker 2 copy one topic, in turn, and what ours costs.

Both are started anew for each run, onto a link that knows nothing, between the same two clusters; ``bench.watching``
says what is timed. The first copy by each is not counted, unless asked for: it makes the brokers compile what they run.
After each of the others its records are counted, and then the program is left idle for a while.
"""

import argparse
import logging
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.clusters import Pair, plain_pair
from bench.copying import Copier
from bench.counting import count
from bench.filling import Load, fill
from bench.footprint import Footprint, footprint
from bench.mirror_maker import mirror_maker
from bench.our_replicator import our_replicator
from bench.row import Row
from bench.watching import watch

_OURS, _THEIRS, _LIMIT = "our replicator", "MirrorMaker 2", "limit"
_COPIERS: Mapping[str, Copier] = {_OURS: our_replicator, _THEIRS: mirror_maker}
_PYTHON_MEGABYTES = 300.0
_PYTHON_IDLE = 5.0

_WARMING_IDLE_SECONDS = 1.0

log = logging.getLogger("appliance.bench")


@dataclass(frozen=True, slots=True)
class Trial:
    """One copy: records a second, and what the copying program cost."""

    rate: float
    footprint: Footprint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench replicate``."""
    parser.add_argument(
        "--records", type=_positive, default=1_000_000, metavar="N", help="how many to copy (%(default)s)"
    )
    parser.add_argument("--runs", type=_positive, default=2, metavar="N", help="copies by each, in turn (%(default)s)")
    parser.add_argument("--cold", action="store_true", help="count the first copies too")
    # Two of the replicator's slices: each time as many of their ends fall into it.
    parser.add_argument(
        "--idle-seconds", type=float, default=20.0, metavar="S", help="idleness after each copy (%(default)g)"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text}")
    return int(text)


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Measures.

    Raises:
        ProcessFailed, ToolMissing: something did not run, or a copy was not whole.
    """
    load = Load(arguments.records)
    trials: dict[str, list[Trial]] = {name: [] for name in _COPIERS}
    async with plain_pair() as pair:
        await fill(pair.source, load)
        await count(pair.source, load.topic, load.partitions)
        if not arguments.cold:
            await _round(pair, load, "warming", _WARMING_IDLE_SECONDS)
        for number in range(arguments.runs):
            for name, trial in (await _round(pair, load, str(number), arguments.idle_seconds)).items():
                trials[name].append(trial)
    return rows(trials[_OURS], trials[_THEIRS])


async def _round(pair: Pair, load: Load, run: str, idle_seconds: float) -> dict[str, Trial]:
    """One copy by each, in turn."""
    return {name: await _trial(pair, load, copier, run, idle_seconds) for name, copier in _COPIERS.items()}


async def _trial(pair: Pair, load: Load, copier: Copier, run: str, idle_seconds: float) -> Trial:
    async with copier(pair, load, run) as copying:
        timeline = await watch(pair.destination, copying.topic, load.records, copying.process)
        copied = await count(pair.destination, copying.topic, load.partitions)
        if copied != load.records:
            raise copying.process.failure(f"copied {copied} records of {load.records}")
        trial = Trial(copied / timeline.seconds, await footprint(copying.process.pid, idle_seconds))
    log.info("topic copied", extra={"fields": {"by": copying.process.name, **_told(trial)}})
    return trial


def _told(trial: Trial) -> dict[str, str]:
    """A trial for people who watch."""
    java, others = trial.footprint.java, trial.footprint.others
    return {
        "rate": f"{trial.rate:,.0f}/s",
        "java": f"{java.memory:.0f}MB,{java.idle:.1f}%",
        "others": f"{others.memory:.0f}MB,{others.idle:.1f}%",
    }


def rows(ours: Sequence[Trial], theirs: Sequence[Trial]) -> list[Row]:
    """The medians of the rates, the highest of the costs."""
    rates = [statistics.median(trial.rate for trial in trials) for trials in (ours, theirs)]
    memory = [
        max((trial.footprint.java + trial.footprint.others).memory for trial in trials) for trials in (ours, theirs)
    ]
    python = [trial.footprint.others for trial in ours]
    return [
        Row("speed", "records/s", rates[0], _THEIRS, rates[1]),
        Row("memory of Python", "MB", max(cost.memory for cost in python), _LIMIT, _PYTHON_MEGABYTES),
        Row("idle Python", "% of a core", max(cost.idle for cost in python), _LIMIT, _PYTHON_IDLE),
        Row("memory with Java", "MB", memory[0], _THEIRS, memory[1]),
    ]
