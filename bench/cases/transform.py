"""The rate, the cost and the latency of SQL in flight, beside MirrorMaker 2 with its transforms and beside no SQL.

All copy the same topic in turn: JSON of 500 bytes with a card number, lz4. Half of the records have a header by which
they are left out: by the WHERE of ours, and by ``Filter`` with ``HasHeaderKey`` of MirrorMaker 2, whose predicates see
nothing else of a record. The others are masked. Ours masks the card number in the JSON, by ``regexp_replace``.
MirrorMaker 2 cannot: its values are byte arrays, whatever the converters, and none of Kafka's own transforms parses
them. So it gets less to do: ``MaskField`` masks a card number that ``HoistField`` and ``InsertField`` have put beside
the value, and ``ExtractField`` takes the value back as it was. *Filter alone* is MirrorMaker 2 without the masking: no
transform of its own could be faster. *No SQL* is our copy of all the bytes.

Rates are the source's records a second, those that are left out included. Each program is started again for each copy,
and the first copies do not count (``replicate``). Processor time is that between the first visible record and the last.
Memory is the highest of each process, and what several share counts once.

Then records come steadily, and half of them go through the SQL, or all of them without it (``latency``).
"""

import argparse
import dataclasses
import functools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.cases.latency import LatencyTrial
from bench.cases.replicate import Turn, schedule, taken
from bench.lib.cards import EVERY
from bench.lib.clusters import Pair, delete_topics, plain_pair
from bench.lib.counting import require_complete
from bench.lib.filling import Load, fill
from bench.lib.footprint import Spent, spending
from bench.lib.latency_figures import Figures
from bench.lib.progress import progress
from bench.lib.row import LIMIT, Row, medians
from bench.lib.setup import add_names, add_number, few
from bench.lib.transforming import NO_SQL, OPTIONS, WAYS
from bench.lib.watching import watch
from bench.lib.workloads import EXACTLY_ONCE, MIRROR_MAKER, OURS

_TITLE = "500-byte records, half left out, a field masked"
_GOALS: Mapping[str, float] = {MIRROR_MAKER: 1.0, EXACTLY_ONCE: 1.0}
_P99_LIMIT = 1_000.0
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Trial:
    """One copy: its rate in the source's records a second, and the cost of the JVM and of the other processes for a
    million of them."""

    rate: float
    java: Spent
    python: Spent


Trials = Mapping[str, Sequence[Trial]]
"""Trials by contender."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench transform``."""
    add_number(parser, "--records", 2_000_000, "records to copy")
    add_number(parser, "--runs", 2, "copies by each program")
    add_number(parser, "--warming", 3, "copies by ours, and one by each other, that do not count", kind=few)
    add_names(parser, "--against", OPTIONS, OPTIONS)
    add_number(parser, "--rate", 5_000, "records a second, for the latency")
    add_number(parser, "--seconds", 30.0, "seconds of that")
    add_number(parser, "--latency-warming", 20.0, "seconds before, not counted")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows."""
    load = Load(arguments.records, cards=True)
    contenders = [OURS, *map(OPTIONS.__getitem__, arguments.against)]
    async with plain_pair() as pair:
        await fill(pair.source, load)
        planned = schedule(contenders, arguments.runs, arguments.warming, idle_seconds=0)
        trials = await taken(planned, functools.partial(_trial, pair, load))
        await delete_topics(pair.destination)
        latencies = {name: await _latency(pair, name, arguments) for name in (OURS, NO_SQL)}
    return [*speeds(trials), *costs(trials), *delays(arguments.rate, latencies)]


async def _trial(pair: Pair, load: Load, turn: Turn) -> Trial:
    """Make one copy, after deleting the previous one, complete or not."""
    await delete_topics(pair.destination)
    way = WAYS[turn.name]
    left = way.left(load)
    async with way.copier(pair, load, turn.run) as copying, spending(copying.process.pid) as spent:
        timeline = await watch(pair.destination, copying.topic, left.records, copying.process)
        java, python = await spent.between(timeline.begun, timeline.ended)
        await require_complete(pair, copying, left)
    trial = Trial(timeline.rate(load.records), _for_a_million(java, load), _for_a_million(python, load))
    progress("topic copied", by=turn.name, rate=f"{trial.rate:,.0f}/s", java=trial.java, python=trial.python)
    return trial


def _for_a_million(spent: Spent, load: Load) -> Spent:
    return dataclasses.replace(spent, seconds=spent.seconds * _MILLION / load.records)


async def _latency(pair: Pair, name: str, arguments: argparse.Namespace) -> Figures:
    way = WAYS[name]
    every = EVERY if way.filters else 1
    trial = LatencyTrial(pair, way.copier, arguments.rate, f"steady{every}", cards=True, every=every)
    return await trial.run(arguments.latency_warming, arguments.seconds)


def speeds(trials: Trials) -> list[Row]:
    """The medians of the rates, ours beside each other's."""
    rates = {name: [trial.rate for trial in each] for name, each in trials.items()}
    return medians(_TITLE, "records/s", OURS, rates, _GOALS)


def costs(trials: Trials) -> list[Row]:
    """The medians of the processor time, and the highest memory, ours beside each other's that has any."""
    return [row for name, each in trials.items() if each and name != OURS for row in _costs(trials[OURS], name, each)]


def _costs(ours: Sequence[Trial], name: str, theirs: Sequence[Trial]) -> list[Row]:
    found = []
    for part in ("Java", "Python"):
        our, their = ([getattr(trial, part.lower()) for trial in trials] for trials in (ours, theirs))
        memory = [max(spent.memory for spent in each) for each in (our, their)]
        seconds = [statistics.median(spent.seconds for spent in each) for each in (our, their)]
        if memory[1]:
            found += [
                Row(f"{part}, for a million records", "s of processor", seconds[0], name, seconds[1]),
                Row(f"memory of {part}", "MB", memory[0], name, memory[1]),
            ]
    return found


def delays(rate: int, latencies: Mapping[str, Figures]) -> list[Row]:
    """The latency through the SQL, beside the limit and that without SQL."""
    ours, bare = latencies[OURS], latencies[NO_SQL]
    figures = {"p50": (ours.p50, bare.p50), "p99": (ours.p99, bare.p99), "max": (ours.highest, bare.highest)}
    return [
        *(Row(f"latency {name} at {rate}/s", "ms", *(our, NO_SQL, their)) for name, (our, their) in figures.items()),
        Row(f"latency p99 at {rate}/s", "ms", ours.p99, LIMIT, _P99_LIMIT, 1.0),
    ]
