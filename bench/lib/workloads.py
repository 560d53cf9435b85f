"""What is copied: loads that differ in what they ask of whoever copies them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.lib.contenders import BARE, MIRROR_MAKER, OTHERS
from bench.lib.filling import Load


@dataclass(frozen=True, slots=True)
class Workload:
    """A load, whom we are measured against, and by how much we are to be faster than some of them.

    ``title`` is the row's name.
    """

    title: str
    load: Load
    against: tuple[str, ...] = OTHERS
    goals: Mapping[str, float] = field(default_factory=dict)


_LARGE_BATCHES = {MIRROR_MAKER: 12.0, BARE: 0.9}
_NO_BARE = tuple(name for name in OTHERS if name != BARE)
"""A request takes one batch for each partition, and no batch with holes: there, to write bare is no limit."""

WORKLOADS: Mapping[str, Workload] = {
    "events": Workload("500-byte records, lz4", Load(1_000_000), goals=_LARGE_BATCHES),
    "plain": Workload(
        "1 kB records, not compressed", Load(2_000_000, value_bytes=1_000, codec="none"), goals=_LARGE_BATCHES
    ),
    "small": Workload("100-byte records, lz4", Load(5_000_000, value_bytes=100), goals=_LARGE_BATCHES),
    "fours": Workload("batches of 4 records", Load(500_000, batch_records=4), _NO_BARE, {MIRROR_MAKER: 3.0}),
    "transactions": Workload(
        "transactions, 20 % aborted", Load(3_000_000, transactional=True), _NO_BARE, {MIRROR_MAKER: 5.0}
    ),
    "compacted": Workload("compacted, with holes", Load(3_000_000, keys=1_500_000), _NO_BARE, {MIRROR_MAKER: 5.0}),
}
