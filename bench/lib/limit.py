"""The time of fetching and then producing the same batches, as the limit of a copy.

A new process for each run fetches the whole topic and discards it; this is timed. Then it fetches the topic again,
prepares its batches, and writes them like a producer without transactions; the writing is timed. The limit is the
number of records divided by the sum of both times. A program that does both at once, on two cores, can exceed it. The
process keeps its memory for reuse, as our tasks do.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass

from appliance.kafka.records.batch import Batch
from appliance.settings.values import Side
from appliance.spark.configuration import MALLOC
from bench.lib import raw_batches
from bench.lib.clusters import Pair, make_topic, plain_client
from bench.lib.filling import Load
from bench.lib.running import running

_DEADLINE = 300.0


@dataclass(frozen=True, slots=True)
class Alone:
    """Both times in seconds, and the share of each in which the process was busy; 1 is a full core."""

    fetch: float
    produce: float
    fetch_busy: float
    produce_busy: float

    @property
    def seconds(self) -> float:
        """Seconds of fetching and producing, one after the other."""
        return self.fetch + self.produce


async def fetch_and_produce(pair: Pair, load: Load, copy: str) -> Alone:
    """Measure, and leave the records in the topic ``copy`` of the destination."""
    await make_topic(pair.destination, copy, load.partitions)
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    command = [sys.executable, "-m", "bench.lib.limit", *bootstrap, load.topic, copy]
    name = "fetching and producing alone"
    async with running(name, command, pair.directory, log_name=copy, variables=MALLOC) as process:
        return Alone(**json.loads(await process.wait_for_line(r"^\{", _DEADLINE)))


async def _measured(source: str, destination: str, topic: str, copy: str) -> Alone:
    batches: dict[int, list[bytes]] = {}

    def keep(partition: int, brought: Sequence[Batch]) -> None:
        batches.setdefault(partition, []).extend(map(raw_batches.without_producer, brought))

    async with plain_client(source, Side.SOURCE) as cluster:
        fetch, fetch_busy = await _timed(raw_batches.read(cluster, topic, lambda _partition, _batches: None))
        await raw_batches.read(cluster, topic, keep)
    async with plain_client(destination, Side.DESTINATION) as cluster:
        produce, produce_busy = await _timed(raw_batches.write(cluster, copy, batches))
    return Alone(fetch, produce, fetch_busy, produce_busy)


async def _timed(work: Awaitable[None]) -> tuple[float, float]:
    begun, busy = time.perf_counter(), time.process_time()
    await work
    seconds = time.perf_counter() - begun
    return seconds, (time.process_time() - busy) / seconds


def main(arguments: Sequence[str]) -> None:
    """Print the fields of ``Alone`` as a line of JSON."""
    print(json.dumps(asdict(asyncio.run(_measured(*arguments)))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
