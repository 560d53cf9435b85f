"""The start of a lane after very many commits and after few, and the first snapshot of ``status``.

A lane starts by reading its partition of the positions topic from its first offset. Kafka keeps the marker of a commit
for ``delete.retention.ms`` after compaction has removed the transaction's records. One broker has three positions
topics: one with few commits, and two with very many. Of these, one keeps markers for a day, which is Kafka's default,
and the other as long as a link's topic.

Their logs are written directly into the broker's files (``positions_log``): mostly markers alone, and complete
transactions for the newest commits, in segments like a link's. Then Kafka's own cleaner cleans both, and the link's
again when its markers have expired. It never cleans the newest segment. The starts and snapshots alternate between the
topics, a few times; the medians count.
"""

import argparse
import asyncio
import contextlib
import logging
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from appliance.engine.write.lane import Lane
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.topics import NewTopic, create_topics
from appliance.link.model.checkpoint import Owner
from appliance.link.model.naming import Naming
from appliance.link.model.topic_configs import positions_topic
from appliance.settings.values import Side
from appliance.status.tail import PositionsTail
from bench.lib import positions_log
from bench.lib.clusters import kafka_cluster
from bench.lib.row import Row
from bench.lib.setup import positive
from testbed.cluster import Cluster
from testbed.plan import ClusterPlan

FEW = 1_000
_ALL = 30_000
"""Maximum number of commits with positions: those of twelve minutes, at 40 a second."""

_KEPT = "delete.retention.ms"
_DAY = str(24 * 60 * 60 * 1000)
_ADDRESS = "127.0.22.1"
_DEADLINE = 600.0
_STOP_SECONDS = 60.0
_TRANSACTION_TIMEOUT = 60.0

log = logging.getLogger("appliance.bench")


@dataclass(frozen=True, slots=True)
class Taken:
    """Elapsed time, and this process's processor time, in seconds."""

    seconds: float
    processor: float


@dataclass(slots=True)
class Trial:
    """A link's positions topic, and its measurements.

    ``kept`` is the time for which it keeps markers, in milliseconds. ``complete`` is the number of commits that still
    have their positions. ``bytes`` is the size of its cleaned log.
    """

    naming: Naming
    commits: int
    kept: str
    complete: int
    bytes: int = 0
    starts: list[Taken] = field(default_factory=list)
    snapshots: list[Taken] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench start``."""
    parser.add_argument(
        "--commits",
        type=_above_few,
        default=10_000_000,
        metavar="N",
        help="commits that the lane is behind (%(default)s)",
    )
    parser.add_argument("--runs", type=positive, default=3, metavar="N", help="starts with each topic (%(default)s)")


def _above_few(text: str) -> int:
    if positive(text) <= FEW:
        raise argparse.ArgumentTypeError(f"expected more than {FEW}, got {text}")
    return int(text)


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows.

    Raises:
        ProcessFailed, ToolMissing: a program did not run, or a log was not cleaned in time.
    """
    commits, kept = arguments.commits, positions_topic(naming("link"), 1, 1).configs[_KEPT]
    complete = min(_ALL, commits // 10)
    day, link = Trial(naming("day"), commits, _DAY, complete), Trial(naming("link"), commits, kept, complete)
    few = Trial(naming("few"), FEW, kept, FEW)
    async with _cleaned_cluster(day, link, few) as cluster, kafka_cluster(cluster, Side.DESTINATION) as client:
        await _start(client, few)  # the coordinator's own topic is made
        for _ in range(arguments.runs):
            for trial in (few, day, link):
                trial.starts.append(await _took(_start(client, trial)))
                trial.snapshots.append(await _took(_snapshot(client, trial)))
    return rows(day, link, few)


def rows(day: Trial, link: Trial, few: Trial) -> list[Row]:
    """The rows: each start beside the start after few commits, and the sizes of the cleaned logs."""
    megabytes = [trial.bytes / 1e6 for trial in (link, day)]
    return [
        *(row for trial in (day, link) for row in _beside(trial, few)),
        Row(f"log of {link.commits:,} commits, {_retention(link)}", "MB", megabytes[0], _retention(day), megabytes[1]),
    ]


def _beside(large: Trial, few: Trial) -> list[Row]:
    behind = f"{few.commits:,} commits"
    found = []
    for name, ours, theirs in (("lane's start", large.starts, few.starts), ("status", large.snapshots, few.snapshots)):
        row = f"{name}, {_retention(large)}"
        found.append(Row(row, "s", _median(ours).seconds, behind, _median(theirs).seconds))
        found.append(Row(row, "s of processor", _median(ours).processor, behind, _median(theirs).processor))
    return found


def _retention(trial: Trial) -> str:
    return f"markers kept {int(trial.kept) // 1000:,} s"


def _median(taken: Sequence[Taken]) -> Taken:
    return Taken(statistics.median(each.seconds for each in taken), statistics.median(each.processor for each in taken))


@contextlib.asynccontextmanager
async def _cleaned_cluster(day: Trial, link: Trial, few: Trial) -> AsyncIterator[Cluster]:
    """A broker with the topics, which its cleaner has finished."""
    trials = (day, link, few)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        async with Cluster(ClusterPlan.plain("destination", address=_ADDRESS), Path(name)) as cluster:
            await _make(cluster, trials)
            await _stop(cluster)
            for trial in trials:
                await asyncio.to_thread(positions_log.write, _directory(cluster, trial), trial.commits, trial.complete)
            await _clean(cluster, [day, link])
            await asyncio.sleep(int(link.kept) / 1000)
            await _clean(cluster, [link])
            for trial in trials:
                trial.bytes = positions_log.size(_directory(cluster, trial))
            yield cluster


async def _make(cluster: Cluster, trials: Sequence[Trial]) -> None:
    async with kafka_cluster(cluster, Side.DESTINATION) as client:
        for error in (await create_topics(client, list(map(_topic, trials)))).failures.values():
            raise error

    async def made() -> bool:
        return all(positions_log.is_made(_directory(cluster, trial)) for trial in trials)

    await cluster.broker(0).process.wait_until(made, _DEADLINE, "make the topics")


def _topic(trial: Trial) -> NewTopic:
    made = positions_topic(trial.naming, 1, 1)
    return replace(made, configs={**made.configs, _KEPT: trial.kept})


async def _clean(cluster: Cluster, trials: Sequence[Trial]) -> None:
    """Wait until the cleaner has cleaned all closed segments of the topics, from the first one.

    Raises:
        ProcessFailed: the cleaner did not finish in time.
    """
    data = _directory(cluster, trials[0]).parent
    topics = {trial.naming.positions_topic for trial in trials}
    began = time.perf_counter()
    await _stop(cluster)
    positions_log.clean_again(data, topics)
    await cluster.restart(0)

    async def cleaned() -> bool:
        return topics <= positions_log.cleaned(data)

    await cluster.broker(0).process.wait_until(cleaned, _DEADLINE, f"clean {', '.join(sorted(topics))}")
    sizes = [positions_log.size(_directory(cluster, trial)) for trial in trials]
    log.info("cleaned", extra={"fields": {"seconds": round(time.perf_counter() - began, 1), "bytes": sizes}})


async def _stop(cluster: Cluster) -> None:
    """Stop the broker normally: after a kill it would read all its logs at its start, which takes minutes here."""
    await cluster.broker(0).process.stop(_STOP_SECONDS)


def _directory(cluster: Cluster, trial: Trial) -> Path:
    return cluster.broker(0).directory / "data" / f"{trial.naming.positions_topic}-0"


async def _start(client: KafkaCluster, trial: Trial) -> None:
    owner = Owner("bench", "bench", "bench", time.time_ns() // 1_000_000)
    await Lane(0, client, trial.naming, owner, _TRANSACTION_TIMEOUT).start()


async def _snapshot(client: KafkaCluster, trial: Trial) -> None:
    topic = trial.naming.positions_topic
    await PositionsTail(client, topic).advance(await client.metadata([topic]))


async def _took(doing: Awaitable[None]) -> Taken:
    seconds, processor = time.perf_counter(), time.process_time()
    await doing
    return Taken(time.perf_counter() - seconds, time.process_time() - processor)


def naming(link: str) -> Naming:
    """The names of a link of the benchmark."""
    return Naming(f"replicator-{link}", "copy", re.compile(".*"), re.compile(""))
