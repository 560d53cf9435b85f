"""The rates of our replicator and of other programs, which copy one topic alternately, and the cost of ours.

Each run starts a new process of the program, with a new link, between the same two clusters; each workload gets new
clusters. ``watching`` describes the timed part of a copy, and ``limit`` that of fetching and producing alone.

Several copies by ours, and one by each other program, run first and do not count. During them the broker's Java
compiles its code, as a user's brokers have done long ago. After each copy that counts, its records are counted. After
those of the first workload, the program is left idle for a while. The program ends, and its copy is deleted, before the
next copy begins. After a failure of another program, its earlier copies count, and it makes no more.
"""

import argparse
import dataclasses
import functools
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from appliance.errors import ApplianceError, ProcessFailed
from bench.lib.clusters import Pair, delete_topics, plain_pair
from bench.lib.counting import count, require_complete
from bench.lib.filling import Load, fill
from bench.lib.footprint import Footprint, footprint
from bench.lib.limit import fetch_and_produce
from bench.lib.progress import log, progress
from bench.lib.row import LIMIT, Row, medians
from bench.lib.setup import add_names, add_number, few, positive
from bench.lib.watching import watch
from bench.lib.workloads import COPIERS, FETCH_AND_PRODUCE, MIRROR_MAKER, OPTIONS, OURS, WORKLOADS, Workload

_PYTHON_MEGABYTES = 300.0
_PYTHON_IDLE = 5.0
_FIRST = next(iter(WORKLOADS))
_COSTED = (OURS, MIRROR_MAKER)


@dataclass(frozen=True, slots=True)
class Trial:
    """One copy: its rate in records a second, the program's idle cost if measured, and the rate of the second half."""

    rate: float
    footprint: Footprint | None = None
    late_rate: float = math.nan


@dataclass(frozen=True, slots=True)
class Turn:
    """A copy to make: its contender, and its name ``run``. A copy that does not count only warms up the brokers."""

    name: str
    run: str
    idle_seconds: float = 0.0
    counts: bool = False


Trials = Mapping[str, Sequence[Trial]]
"""Trials by contender."""

AnyTrial = TypeVar("AnyTrial")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench replicate``."""
    add_names(parser, "--workload", WORKLOADS, [_FIRST])
    add_names(parser, "--against", OPTIONS, OPTIONS)
    parser.add_argument("--records", type=positive, metavar="N", help="records, instead of each workload's own number")
    add_number(parser, "--runs", 2, "copies by each program")
    add_number(parser, "--warming", 5, "copies by ours, and one by each other, that do not count", kind=few)
    add_number(parser, "--idle-seconds", 30.0, "idle seconds after each copy")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    measured: list[Row] = []
    for name in arguments.workload:
        workload = WORKLOADS[name]
        load = workload.load
        if arguments.records:
            load = dataclasses.replace(load, records=arguments.records)
        copying = [OURS, *(each for each in map(OPTIONS.__getitem__, arguments.against) if each in workload.against)]
        idle_seconds = arguments.idle_seconds if name == _FIRST else 0.0
        trials = await _trials(load, schedule(copying, arguments.runs, arguments.warming, idle_seconds))
        measured += speeds(workload, trials) + costs(trials)
    return measured


def schedule(copying: Sequence[str], runs: int, warming: int, idle_seconds: float) -> list[Turn]:
    """The order of the copies: first those that warm up the brokers, with ours as the last of them."""
    before = [*copying[1:], *[OURS] * warming] if warming else []
    unwatched = [Turn(name, f"warming{number}") for number, name in enumerate(before)]
    return unwatched + [Turn(name, str(run), idle_seconds, counts=True) for run in range(runs) for name in copying]


async def _trials(load: Load, planned: Sequence[Turn]) -> Trials:
    async with plain_pair() as pair:
        await fill(pair.source, load)
        visible = await count(pair.source, load.topic, load.partitions)
        if visible != load.visible:
            raise ProcessFailed(f"topic {load.topic} holds {visible} records, and not {load.visible}")
        return await taken(planned, functools.partial(_trial, pair, load))


async def taken(planned: Sequence[Turn], copy: Callable[[Turn], Awaitable[AnyTrial]]) -> Mapping[str, list[AnyTrial]]:
    """Make one ``copy`` after the other. After a failure, a program other than ours gets no further turn."""
    trials: dict[str, list[AnyTrial]] = {turn.name: [] for turn in planned}
    failed: set[str] = set()
    for turn in planned:
        if turn.name in failed:
            continue
        try:
            trial = await copy(turn)
        except ApplianceError as error:
            if turn.name == OURS:
                raise
            failed.add(turn.name)
            log.warning("left out", extra={"fields": {"by": turn.name, "reason": str(error)}})
        else:
            trials[turn.name] += [trial] if turn.counts else []
    return trials


async def _trial(pair: Pair, load: Load, turn: Turn) -> Trial:
    """Make one copy, after deleting the previous one, complete or not."""
    await delete_topics(pair.destination)
    trial = await (
        _fetched_and_produced(pair, load, turn.run) if turn.name == FETCH_AND_PRODUCE else _copied(pair, load, turn)
    )
    progress("topic copied", by=turn.name, **_fields(trial))
    return trial


async def _copied(pair: Pair, load: Load, turn: Turn) -> Trial:
    async with COPIERS[turn.name](pair, load, turn.run) as copying:
        timeline = await watch(pair.destination, copying.topic, load.visible, copying.process)
        if turn.counts:
            await require_complete(pair, copying, load)
        idle = turn.idle_seconds if turn.name in _COSTED else 0.0
        cost = await footprint(copying.process.pid, idle) if idle else None
        return Trial(timeline.rate(load.visible), cost, timeline.rate(load.visible, after=0.5))


async def _fetched_and_produced(pair: Pair, load: Load, run: str) -> Trial:
    copy = f"{load.topic}.bare{run}"
    alone = await fetch_and_produce(pair, load, copy)
    copied = await count(pair.destination, copy, load.partitions)
    if copied != load.visible:
        raise ProcessFailed(f"{copied} records of {load.visible} were fetched and produced")
    progress("fetched and produced", **{k: f"{v:.2f}" for k, v in dataclasses.asdict(alone).items()})
    return Trial(copied / alone.seconds)


def _fields(trial: Trial) -> dict[str, str]:
    """The trial's fields in a progress line."""
    fields = {"rate": f"{trial.rate:,.0f}/s"}
    if not math.isnan(trial.late_rate):
        fields["second_half"] = f"{trial.late_rate:,.0f}/s"
    if trial.footprint is not None:
        fields |= {"java": str(trial.footprint.java), "others": str(trial.footprint.others)}
    return fields


def speeds(workload: Workload, trials: Trials) -> list[Row]:
    """The medians of the rates, ours beside each other program's."""
    rates = {name: [trial.rate for trial in each] for name, each in trials.items()}
    return medians(workload.title, "records/s", OURS, rates, workload.goals)


def costs(trials: Trials) -> list[Row]:
    """The highest costs, if any were measured."""
    ours, theirs = (_footprints(trials.get(name, ())) for name in _COSTED)
    rows = []
    if ours:
        python = [each.others for each in ours]
        rows += [
            Row("memory of Python", "MB", max(cost.memory for cost in python), LIMIT, _PYTHON_MEGABYTES),
            Row("idle Python", "% of a core", max(cost.processor for cost in python), LIMIT, _PYTHON_IDLE),
        ]
    if ours and theirs:
        memory = [max(each.total.memory for each in footprints) for footprints in (ours, theirs)]
        rows.append(Row("memory with Java", "MB", memory[0], MIRROR_MAKER, memory[1]))
    return rows


def _footprints(trials: Sequence[Trial]) -> list[Footprint]:
    return [trial.footprint for trial in trials if trial.footprint is not None]
