"""The memory of the replicator's Python processes while they copy a backlog of several gigabytes.

The records have values of 1 kB, without compression, on eight partitions. Memory is the sum of all
processes' shares without Java's. It is sampled twice a second from the copy's first visible record to the last. Copied
records must not be kept in memory, so the last quarter of the samples should equal the first.
"""

import argparse
import logging
from collections.abc import Sequence

from appliance.errors import ProcessFailed
from bench.lib.clusters import plain_pair
from bench.lib.counting import require_complete
from bench.lib.filling import Load, fill
from bench.lib.our_replicator import our_replicator
from bench.lib.row import LIMIT, Row
from bench.lib.sampling import Course, Sample, sampled
from bench.lib.watching import watch

_FIRST = "first quarter"
_FLAT = 1.1
_VALUE_BYTES = 1000
_PARTITIONS = 8
_PYTHON_MEGABYTES = 300.0
_GIGABYTE = 1e9

log = logging.getLogger("appliance.bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench backlog``."""
    parser.add_argument(
        "--gigabytes", type=float, default=4.0, metavar="GB", help="size of the backlog's values (%(default)g)"
    )


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows.

    Raises:
        ProcessFailed, ToolMissing: a program did not run, or a copy was incomplete, or too short to be sampled.
    """
    records = round(arguments.gigabytes * _GIGABYTE / _VALUE_BYTES)
    load = Load(records, partitions=_PARTITIONS, value_bytes=_VALUE_BYTES, codec="none")
    async with plain_pair() as pair:
        await fill(pair.source, load)
        async with our_replicator(pair, load, "0") as copying, sampled(copying.process.pid) as samples:
            timeline = await watch(pair.destination, copying.topic, load.records, copying.process)
            await require_complete(pair, copying, load)
    log.info("backlog copied", extra={"fields": {"rate": f"{timeline.rate(load.visible):,.0f}/s"}})
    return rows(samples, timeline.begun, timeline.ended)


def rows(samples: Sequence[Sample], begun: float, ended: float) -> list[Row]:
    """Our memory from the first visible record to the last, beside the limit, and its last quarter beside the first.

    Raises:
        ProcessFailed: there is no sample.
    """
    try:
        course = Course.of(samples, begun, ended)
    except ValueError as error:
        raise ProcessFailed(f"the backlog was copied too soon: {error}; take more with --gigabytes") from error
    return [
        Row("memory of Python, highest", "MB", course.highest, LIMIT, _PYTHON_MEGABYTES),
        Row("memory of Python, last quarter", "MB", course.last, _FIRST, course.first, _FLAT),
    ]
