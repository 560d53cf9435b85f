"""The process beside one cluster, as ``appliance order run`` runs it; SIGUSR1 makes it stand for home."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from appliance.commands.order.run import run_beside
from appliance.engine.problem_log import to_log
from appliance.order.process import OrderProcess
from appliance.runtime import log
from appliance.settings.env_file import read_order
from appliance.settings.role import Role


async def _run(env_file: Path) -> None:
    settings = read_order(env_file, Role.REPLICATOR, os.environ)
    log.configure(settings.log)
    loop, stopping, begun = asyncio.get_running_loop(), asyncio.Event(), list[OrderProcess]()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: [process.stand() for process in begun])
    await run_beside(settings, to_log, stopping, begun.append)


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1])))
