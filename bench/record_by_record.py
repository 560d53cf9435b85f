"""The copy record by record of ``bench.record_program``, as a contender."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator

from appliance.demo.process import OwnedProcess
from bench.clusters import Pair, make_topic
from bench.copying import Copying
from bench.filling import Load
from bench.our_replicator import environment


@contextlib.asynccontextmanager
async def record_by_record(pair: Pair, load: Load, run: str) -> AsyncIterator[Copying]:
    """Copies the load; see ``bench.copying.Copier``."""
    copy = f"{load.topic}.records{run}"
    await make_topic(pair.destination, copy, load.partitions)
    bootstrap = pair.source.home_bootstrap, pair.destination.home_bootstrap
    command = [sys.executable, "-m", "bench.record_program", *bootstrap, load.topic, copy, load.codec]
    process = await OwnedProcess.start(
        "the copy record by record", command, pair.directory / f"{copy}.log", environment(os.environ, pair.directory)
    )
    try:
        yield Copying(process, copy)
    finally:
        await process.stop()
