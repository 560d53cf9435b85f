"""The contenders of SQL in flight, by the names of their rows."""

import contextlib
import dataclasses
import functools
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from bench.lib.cards import FILTER, FILTER_AND_MASK, STATEMENT, kept
from bench.lib.clusters import Pair
from bench.lib.copying import Copier, Copying
from bench.lib.filling import Load
from bench.lib.mirror_maker import mirror_maker
from bench.lib.our_replicator import our_replicator
from bench.lib.workloads import EXACTLY_ONCE, MIRROR_MAKER, OURS

NO_SQL = "our replicator, no SQL"
FILTER_ALONE = "MirrorMaker 2, filter alone"

OPTIONS: Mapping[str, str] = {
    "mirror-maker": MIRROR_MAKER,
    "exactly-once": EXACTLY_ONCE,
    "filter-alone": FILTER_ALONE,
    "no-sql": NO_SQL,
}
"""The values of ``--against``."""


@dataclass(frozen=True, slots=True)
class Way:
    """A contender; if it is one that ``filters``, its copy has only the events that are kept."""

    copier: Copier
    filters: bool = True

    def left(self, load: Load) -> Load:
        """The records of its copy."""
        return dataclasses.replace(load, records=kept(load.records)) if self.filters else load


@contextlib.asynccontextmanager
async def by_sql(pair: Pair, load: Load, run: str) -> AsyncIterator[Copying]:
    """Ours with the statement; see ``bench.lib.copying.Copier``."""
    file = pair.directory / f"sql{run}.sql"
    file.write_text(STATEMENT)
    async with our_replicator(pair, load, f"sql{run}", {"REPLICA_TRANSFORM_SQL_FILE": str(file)}) as copying:
        yield copying


@contextlib.asynccontextmanager
async def _filter_alone(pair: Pair, load: Load, run: str) -> AsyncIterator[Copying]:
    async with mirror_maker(pair, load, f"filter{run}", connector=FILTER) as copying:
        yield copying


WAYS: Mapping[str, Way] = {
    OURS: Way(by_sql),
    MIRROR_MAKER: Way(functools.partial(mirror_maker, connector=FILTER_AND_MASK)),
    EXACTLY_ONCE: Way(functools.partial(mirror_maker, exactly_once=True, connector=FILTER_AND_MASK)),
    FILTER_ALONE: Way(_filter_alone),
    NO_SQL: Way(our_replicator, filters=False),
}
