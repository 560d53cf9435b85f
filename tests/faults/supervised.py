"""A process that is started again whenever it ends, as a container's restart policy does."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable

import psutil

from appliance.errors import ProcessFailed
from testbed.process import OwnedProcess
from tests.faults.injection.switches import Host
from tests.support.processes import family, runs

HERE = Host("here", "127.0.0.1")

_PAUSE = 0.2
_A_LONG_TIME = 24 * 60 * 60.0
_EXECUTOR = "appliance.driver.daemon"
_UNCAUGHT = ("Traceback (most recent call last)", "was never retrieved", "was never awaited")


class Supervised:
    """Keeps one process running on ``host``; ``start`` makes a new one."""

    def __init__(self, start: Callable[[], Awaitable[OwnedProcess]], host: Host = HERE) -> None:
        self.host = host
        self.exits: list[int] = []
        self._start = start
        self._process: OwnedProcess | None = None
        self._all: list[OwnedProcess] = []
        self._keeping: asyncio.Task[None] | None = None

    @property
    def process(self) -> OwnedProcess:
        """The newest one.

        Raises:
            ProcessFailed: there was none yet.
        """
        if self._process is None:
            raise ProcessFailed("it was never started")
        return self._process

    async def start(self) -> None:
        """Returns when the first one was started; it becomes ready by itself."""
        await self._launch()
        self.keep()

    async def replace(self, start: Callable[[], Awaitable[OwnedProcess]] | None = None) -> None:
        """Stop it as an operator does, and start it again, from now on by ``start``."""
        await self.release()
        await self.process.stop()
        self._start = start or self._start
        await self.start()

    def keep(self) -> None:
        """Start it again whenever it ends, from now on."""
        self._keeping = asyncio.create_task(self._keep(), name="supervisor")

    async def release(self) -> None:
        """Start it no more."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    def defects(self) -> list[str]:
        """The unexplained: ends without a request, and uncaught errors."""
        ends = [f"ended with status {status}" for status in self.exits if status != -signal.SIGKILL]
        logs = [process.log_file.read_text() for process in self._all]
        return ends + [line for log in logs for line in log.splitlines() if any(sign in line for sign in _UNCAUGHT)]

    async def close(self) -> None:
        """Kill it, and whatever earlier ones left behind."""
        await self.release()
        for process in self._all:
            await process.kill()

    def kill(self) -> None:
        """SIGKILL to the process alone; what it has started has to find out, and end."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP to the process and all that it has started."""
        self._signal_all(signal.SIGSTOP)

    def pause_alone(self) -> None:
        """SIGSTOP to the process alone: the tasks of its Spark go on."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT to all of them."""
        self._signal_all(signal.SIGCONT)

    def executors(self) -> list[psutil.Process]:
        """The Python processes in which Spark runs tasks: the forks of its daemon."""
        pythons = {process.pid: process for process in self.family() if runs(process, _EXECUTOR)}
        return [process for process in pythons.values() if _parent(process) in pythons]

    def family(self) -> list[psutil.Process]:
        """The process and all that it has started."""
        return family(self.process.pid)

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    async def _keep(self) -> None:
        while True:
            self.exits.append(await self.process.wait(_A_LONG_TIME))
            await asyncio.sleep(_PAUSE)
            await self._launch()

    async def _launch(self) -> None:
        self._process = await self._start()
        self._all.append(self._process)


def _parent(process: psutil.Process) -> int | None:
    """The process id of its parent; None if it has ended."""
    with contextlib.suppress(psutil.Error):
        return process.ppid()
    return None


def has_ended(process: psutil.Process) -> bool:
    """True if it has ended, even if its status was not read yet."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True
