"""Who copies: our replicator, and those it is measured against, each by the name of its row."""

import functools
from collections.abc import Mapping

from bench.lib.copying import Copier
from bench.lib.mirror_maker import mirror_maker
from bench.lib.our_replicator import our_replicator
from bench.lib.record_by_record import record_by_record

OURS = "our replicator"
MIRROR_MAKER = "MirrorMaker 2"
EXACTLY_ONCE = "MirrorMaker 2, exactly once"
RECORD_BY_RECORD = "record by record"
BARE = "fetch + produce alone"

COPIERS: Mapping[str, Copier] = {
    OURS: our_replicator,
    MIRROR_MAKER: mirror_maker,
    EXACTLY_ONCE: functools.partial(mirror_maker, exactly_once=True),
    RECORD_BY_RECORD: record_by_record,
}
"""All but ``BARE``, which is no copier: ``bench.lib.limit``."""

OPTIONS: Mapping[str, str] = {
    "mirror-maker": MIRROR_MAKER,
    "exactly-once": EXACTLY_ONCE,
    "record-by-record": RECORD_BY_RECORD,
    "limit": BARE,
}
"""The values of ``--against``."""

OTHERS = tuple(OPTIONS.values())
