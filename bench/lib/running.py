"""Programs that the benchmarks run beside what they measure."""

import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bench.lib.our_replicator import environment
from testbed.process import OwnedProcess

_READY_SECONDS = 20.0


@contextlib.asynccontextmanager
async def running(name: str, command: Sequence[str], directory: Path, ready: str) -> AsyncIterator[OwnedProcess]:
    """Runs a program whose output has a line with the regular expression ``ready`` once it is."""
    log_file = directory / f"{name.replace(' ', '-')}.log"
    process = await OwnedProcess.start(name, command, log_file, environment(os.environ, directory))
    try:
        await process.wait_for_line(ready, _READY_SECONDS)
        yield process
    finally:
        await process.stop()
