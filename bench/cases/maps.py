"""The growth of the maps of offsets with a trickle, beside what is allowed: 1 % of the copied bytes, or 1 MB an hour.

Counted are all bytes that there are because of the maps: their tails, which lie in the position records, and their
segments. Compaction keeps the newest of each; what was written and replaced by then is told as well. For thousands of
partitions the maps are made without brokers, by the code of a lane, of a sample of the partitions, which are alike. A
run of the replicator between two real clusters, with fewer partitions, is counted on its topics beside the same model.
"""

import argparse
import asyncio
import logging
import random

from confluent_kafka import Producer

from appliance.errors import ProcessFailed
from appliance.kafka.client.cluster import KafkaCluster
from appliance.kafka.client.offsets import Bound, list_offsets
from appliance.kafka.records.records import Record
from appliance.link.client.checkpoint_log import read_records
from appliance.link.model.checkpoint_records import decode
from appliance.link.model.offset_records import segment_key
from appliance.link.model.position import Position
from appliance.settings.values import Side
from bench.lib.clusters import Pair, kafka_cluster, make_topic, plain_pair
from bench.lib.filling import Load
from bench.lib.our_replicator import our_replicator
from bench.lib.row import LIMIT, Row
from bench.lib.setup import positive
from bench.lib.trickle_maps import VALUE_BYTES, Kind, MapBytes, plain, tail_bytes, transaction, trickle
from bench.lib.watching import until_begun

KINDS: dict[str, Kind] = {"records": plain, "transactions": transaction}
_ALLOWED_SHARE, _ALLOWED_BYTES = 0.01, 1_000_000
_SAMPLE = 50
_SEED = 10
_RUN = "0"
_CALL_SECONDS = 60.0
_BEGIN_SECONDS = 90.0
_COPIED_SECONDS = 120.0
_PAUSE = 0.5

log = logging.getLogger("appliance.bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``bin/bench maps``."""
    parser.add_argument(
        "--partitions", type=positive, default=10_000, metavar="N", help="partitions of the trickle (%(default)s)"
    )
    parser.add_argument(
        "--writes", type=positive, nargs="+", default=[6, 60, 600], metavar="N",
        help="writes into each of them in an hour (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--real-partitions", type=positive, default=50, metavar="N", help="partitions between clusters (%(default)s)"
    )
    parser.add_argument(
        "--real-writes", type=positive, default=120, metavar="N", help="transactions in each of them (%(default)s)"
    )


async def run(arguments: argparse.Namespace) -> list[Row]:
    """Run the benchmark, and return its rows.

    Raises:
        ProcessFailed, ToolMissing: something did not run, or was not copied in time.
    """
    rows = [row for writes in arguments.writes for row in modelled(arguments.partitions, writes)]
    async with plain_pair() as pair:
        return [*rows, *await _on_topics(pair, arguments.real_partitions, arguments.real_writes)]


def modelled(partitions: int, writes: int) -> list[Row]:
    """The growth in an hour of so many writes into each partition."""
    rows = []
    for name, kind in KINDS.items():
        sample = min(partitions, _SAMPLE)
        found, times = trickle(sample, writes, kind, _SEED), partitions / sample
        allowed = max(_ALLOWED_SHARE * found.copied * times, _ALLOWED_BYTES)
        what = f"{partitions:,} partitions, {writes:,} {name} in each an hour"
        rows += [
            Row(f"{what}: kept", "bytes", found.kept * times, LIMIT, allowed, 1.0),
            Row(f"{what}: written", "bytes", found.written * times, "copied", found.copied * times),
        ]
    return rows


async def _on_topics(pair: Pair, partitions: int, writes: int) -> list[Row]:
    """The bytes of the maps on the topics of a link, a partition, beside those of the model."""
    load = Load(records=0, partitions=partitions)
    await make_topic(pair.source, load.topic, partitions)
    records = await asyncio.to_thread(_write, pair, load.topic, partitions, 1)
    async with our_replicator(pair, load, _RUN) as copying:
        await until_begun(pair.destination, copying.topic, copying.process, _BEGIN_SECONDS)
        records += await asyncio.to_thread(_write, pair, load.topic, partitions, writes - 1)
        async with kafka_cluster(pair.destination, Side.DESTINATION) as destination:
            topics = (f"replicator-ours{_RUN}.positions", f"replicator-ours{_RUN}.offsets")
            found, commits = await _until_copied(destination, topics, records)
            copying.process.require_running()
    model = trickle(partitions, writes, transaction, _SEED)
    log.info("maps read", extra={"fields": {"positions": commits, "writes": partitions * writes}})
    each = f"{writes} transactions in each of {partitions} partitions"
    return [
        Row(f"{each}: kept a partition", "bytes", found.kept / partitions, "model", model.kept / partitions),
        Row(f"{each}: written a partition", "bytes", found.written / partitions, "model", model.written / partitions),
    ]


def _write(pair: Pair, topic: str, partitions: int, writes: int) -> int:
    """Write to each partition in turn, each time in a transaction of its own; the number of committed records."""
    client = {**pair.source.client_configuration(), "linger.ms": 0, "transactional.id": "bench"}
    producer, chance, committed = Producer(client), random.Random(_SEED), 0
    producer.init_transactions(_CALL_SECONDS)
    for _ in range(writes):
        for partition in range(partitions):
            write = transaction(chance)
            producer.begin_transaction()
            for _ in range(write.records):
                producer.produce(topic, b"v" * VALUE_BYTES, partition=partition)
            if write.aborted:
                producer.flush(_CALL_SECONDS)
                producer.abort_transaction(_CALL_SECONDS)
            else:
                producer.commit_transaction(_CALL_SECONDS)
                committed += write.records
    return committed


async def _until_copied(destination: KafkaCluster, topics: tuple[str, str], records: int) -> tuple[MapBytes, int]:
    """Wait until so many records are copied; the maps as the topics have them, and the number of positions.

    Raises:
        ProcessFailed: they are not in time.
    """
    deadline = asyncio.get_running_loop().time() + _COPIED_SECONDS
    while True:
        found, counts, commits = MapBytes(), dict[object, int](), 0
        for record in await _records(destination, topics[0]):
            match decode(record):
                case (tuple() as partition, Position() as position):
                    counts[partition], commits = position.records, commits + 1
                    found.tail(partition, tail_bytes(partition, position))
                case _:
                    pass
        if sum(counts.values()) >= records:
            break
        if asyncio.get_running_loop().time() > deadline:
            raise ProcessFailed(f"{sum(counts.values())} of {records} records were copied in {_COPIED_SECONDS:g} s")
        await asyncio.sleep(_PAUSE)
    for record in await _records(destination, topics[1]):
        found.segments({segment_key(record): record})
    return found, commits


async def _records(cluster: KafkaCluster, topic: str) -> list[Record]:
    """All committed records of a topic."""
    metadata = await cluster.metadata([topic])
    partitions = [(topic, number) for number in range(len(metadata.topics[topic].leaders))]
    ends, found = await list_offsets(cluster, metadata, partitions, Bound.STABLE_END), list[Record]()
    for partition, end in ends.items():
        at = 0
        while at < end:
            records, at = await read_records(cluster, metadata, partition, at)
            found += records
    return found
