"""The copy record by record of ``bench.lib.record_program``, as a contender."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator

from bench.lib.clusters import Pair, make_topic
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.our_replicator import environment
from testbed.process import OwnedProcess


@contextlib.asynccontextmanager
async def record_by_record(pair: Pair, load: Load, run: str) -> AsyncIterator[Copying]:
    """Copy the load; see ``bench.lib.copying.Copier``."""
    copy = f"{load.topic}.records{run}"
    await make_topic(pair.destination, copy, load.partitions)
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    command = [sys.executable, "-m", "bench.lib.record_program", *bootstrap, load.topic, copy, load.codec]
    process = await OwnedProcess.start(
        "the copy record by record", command, pair.directory / f"{copy}.log", environment(os.environ, pair.directory)
    )
    try:
        yield Copying(process, copy)
    finally:
        await process.stop()
