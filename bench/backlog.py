"""Catching up with several gigabytes that are there before the replicator starts: the memory of its Python side.

The records have values of 1 kB, without compression, on eight partitions. Memory is what all processes but Java's share
out among them, looked at twice a second from the copy's first visible record to its last: what is copied must not be
kept, so the last quarter of the looks sees what the first has seen. MirrorMaker 2 copies the same, for its speed.
"""

import argparse
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from appliance.errors import ProcessFailed
from bench.clusters import Pair, delete_topics, plain_pair
from bench.contenders import COPIERS, MIRROR_MAKER, OURS
from bench.copying import Copier
from bench.filling import Load, fill
from bench.row import Row
from bench.sampling import Course, Sample, sampled
from bench.watching import watch
from bench.whole import require_whole

_LIMIT, _FIRST = "limit", "first quarter"
_FLAT = 1.1
_VALUE_BYTES = 1000
_PARTITIONS = 8
_PYTHON_MEGABYTES = 300.0
_GIGABYTE = 1e9

log = logging.getLogger("appliance.bench")


@dataclass(frozen=True, slots=True)
class Trial:
    """One copy: records a second, the samples of its memory, and when its first and last record were visible."""

    rate: float
    samples: Sequence[Sample]
    begun: float
    ended: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench backlog``."""
    parser.add_argument("--gigabytes", type=float, default=4.0, metavar="GB", help="of values (%(default)g)")


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Measures.

    Raises:
        ProcessFailed, ToolMissing: something did not run, a copy was not whole, or was done too soon to be sampled.
    """
    records = round(arguments.gigabytes * _GIGABYTE / _VALUE_BYTES)
    load = Load(records, partitions=_PARTITIONS, value_bytes=_VALUE_BYTES, codec="none")
    async with plain_pair() as pair:
        await fill(pair.source, load)
        return rows(await _trial(pair, load, COPIERS[OURS]), await _trial(pair, load, COPIERS[MIRROR_MAKER]))


async def _trial(pair: Pair, load: Load, copier: Copier) -> Trial:
    async with copier(pair, load, "0") as copying, sampled(copying.process.pid) as samples:
        timeline = await watch(pair.destination, copying.topic, load.records, copying.process)
        await require_whole(pair, copying, load)
    await delete_topics(pair.destination)
    trial = Trial(timeline.rate(load.visible), samples, timeline.begun, timeline.ended)
    log.info("backlog copied", extra={"fields": {"by": copying.process.name, "rate": f"{trial.rate:,.0f}/s"}})
    return trial


def rows(ours: Trial, theirs: Trial) -> list[Row]:
    """Our memory beside the limit and beside itself, and our speed beside the peer's.

    Raises:
        ProcessFailed: there is no sample of it.
    """
    try:
        course = Course.of(ours.samples, ours.begun, ours.ended)
    except ValueError as error:
        raise ProcessFailed(f"the backlog was copied too soon: {error}; take more with --gigabytes") from error
    return [
        Row("memory of Python, highest", "MB", course.highest, _LIMIT, _PYTHON_MEGABYTES),
        Row("memory of Python, last quarter", "MB", course.last, _FIRST, course.first, _FLAT),
        Row("speed", "records/s", ours.rate, MIRROR_MAKER, theirs.rate),
    ]
