"""The contenders, by the names of their rows, and the loads that they copy."""

import contextlib
import functools
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from bench.lib.clusters import Pair, make_topic
from bench.lib.copying import Copier, Copying
from bench.lib.filling import Load
from bench.lib.mirror_maker import mirror_maker
from bench.lib.our_replicator import our_replicator
from bench.lib.running import running

OURS = "our replicator"
MIRROR_MAKER = "MirrorMaker 2"
EXACTLY_ONCE = "MirrorMaker 2, exactly once"
RECORD_BY_RECORD = "record by record"
FETCH_AND_PRODUCE = "fetch + produce alone"


@contextlib.asynccontextmanager
async def record_by_record(pair: Pair, load: Load, run: str) -> AsyncIterator[Copying]:
    """Copy the load by ``bench.lib.record_program``; see ``bench.lib.copying.Copier``."""
    copy = f"{load.topic}.records{run}"
    await make_topic(pair.destination, copy, load.partitions)
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    command = [sys.executable, "-m", "bench.lib.record_program", *bootstrap, load.topic, copy, load.codec]
    async with running("the copy record by record", command, pair.directory, log_name=copy) as process:
        yield Copying(process, copy)


COPIERS: Mapping[str, Copier] = {
    OURS: our_replicator,
    MIRROR_MAKER: mirror_maker,
    EXACTLY_ONCE: functools.partial(mirror_maker, exactly_once=True),
    RECORD_BY_RECORD: record_by_record,
}
"""The contenders that copy, which are all but ``FETCH_AND_PRODUCE`` (``bench.lib.limit``)."""

OPTIONS: Mapping[str, str] = {
    "mirror-maker": MIRROR_MAKER,
    "exactly-once": EXACTLY_ONCE,
    "record-by-record": RECORD_BY_RECORD,
    "limit": FETCH_AND_PRODUCE,
}
"""The values of ``--against``."""

OTHERS = tuple(OPTIONS.values())


@dataclass(frozen=True, slots=True)
class Workload:
    """A load, its contenders, and our goals against some of them.

    ``title`` is the row's name.
    """

    title: str
    load: Load
    against: tuple[str, ...] = OTHERS
    goals: Mapping[str, float] = field(default_factory=dict)


_LARGE_BATCHES = {MIRROR_MAKER: 12.0, FETCH_AND_PRODUCE: 0.9}
_WITHOUT_LIMIT = tuple(name for name in OTHERS if name != FETCH_AND_PRODUCE)
"""The contenders without the limit: a Produce takes one batch for each partition, and none with holes."""

WORKLOADS: Mapping[str, Workload] = {
    "events": Workload("500-byte records, lz4", Load(1_000_000), goals=_LARGE_BATCHES),
    "plain": Workload(
        "1 kB records, not compressed", Load(2_000_000, value_bytes=1_000, codec="none"), goals=_LARGE_BATCHES
    ),
    "small": Workload("100-byte records, lz4", Load(5_000_000, value_bytes=100), goals=_LARGE_BATCHES),
    "fours": Workload("batches of 4 records", Load(500_000, batch_records=4), _WITHOUT_LIMIT, {MIRROR_MAKER: 3.0}),
    "transactions": Workload(
        "transactions, 20 % aborted", Load(3_000_000, transactional=True), _WITHOUT_LIMIT, {MIRROR_MAKER: 5.0}
    ),
    "compacted": Workload(
        "compacted, with holes", Load(3_000_000, keys=1_500_000), _WITHOUT_LIMIT, {MIRROR_MAKER: 5.0}
    ),
}
