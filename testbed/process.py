"""A child process with a log file and a deadline to become ready, which never outlives this process.

It leads its own session, so that Ctrl-C reaches only this process, and all its descendants can be found and killed.
"""

import asyncio
import contextlib
import logging
import os
import re
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from appliance.errors import ProcessFailed
from appliance.runtime.child_process import killed_with_parent

_POLL_SECONDS = 0.03
_TAIL_LINES = 15

log = logging.getLogger("demo")


class OwnedProcess:
    """A running program; ``start`` starts it, and ``stop`` or ``kill`` ends it with its descendants."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log_file: Path, log_start: int) -> None:
        self.name = name
        self.log_file = log_file
        self._process = process
        self._log_start = log_start
        self._ended = False

    @classmethod
    async def start(
        cls, name: str, command: Sequence[str], log_file: Path, environment: Mapping[str, str] | None = None
    ) -> "OwnedProcess":
        """Start ``command`` and append its output to ``log_file``; ``environment`` None means this process's."""
        with _appending(log_file) as output:
            log_start = output.tell()  # before the start: its output moves our position too
            process = await asyncio.create_subprocess_exec(
                *killed_with_parent(command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
            return cls(name, process, log_file, log_start)

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its group."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return self._process.returncode is None

    async def wait(self, timeout: float) -> int:
        """The exit status; if a signal killed it, minus the signal's number.

        Raises:
            ProcessFailed: it still runs after ``timeout`` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._process.wait()
        except TimeoutError as error:
            raise self.failure(f"did not end within {timeout:g} s") from error

    async def wait_until(self, ready: Callable[[], Awaitable[bool]], timeout: float, what: str) -> None:
        """Call ``ready`` until it returns true; ``what`` completes "<name> did not ... within <timeout> s".

        Raises:
            ProcessFailed: the process ended, or ``timeout`` seconds passed, before that.
        """
        try:
            async with asyncio.timeout(timeout):
                while not await ready():
                    self.require_running()
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            raise self.failure(f"did not {what} within {timeout:g} s") from error

    async def wait_for_line(self, pattern: str, timeout: float) -> str:
        """The first line of its output that contains the regular expression.

        Raises:
            ProcessFailed: as ``wait_until``.
        """
        found: list[str] = []

        async def printed() -> bool:
            whole_lines = self._output().rpartition("\n")[0].splitlines()
            found[:] = [line for line in whole_lines if re.search(pattern, line)]
            return bool(found)

        await self.wait_until(printed, timeout, f"print a line with {pattern!r}")
        return found[0]

    async def wait_for_address(self, pattern: str, timeout: float) -> str:
        """The address, host:port, in the first line of its log that contains the regular expression.

        Raises:
            ProcessFailed: as ``wait_until``.
        """
        line = await self.wait_for_line(pattern + r".* address=\S+", timeout)
        return line.rpartition("address=")[2].split()[0]

    async def wait_for_port(self, host: str, port: int, timeout: float) -> None:
        """Wait until the TCP port accepts connections.

        Raises:
            ProcessFailed: as ``wait_until``.
        """

        async def accepts() -> bool:
            try:
                _, writer = await asyncio.open_connection(host, port)
            except OSError:
                return False
            writer.close()
            return True

        await self.wait_until(accepts, timeout, f"listen on {host}:{port}")

    def require_running(self) -> None:
        """Require that it is running.

        Raises:
            ProcessFailed: it has ended.
        """
        if not self.running:
            raise self.failure(f"ended with status {self._process.returncode}")

    def failure(self, what: str) -> ProcessFailed:
        """The error ``<name> <what>``, followed by the tail of the output without Java's stack frames."""
        lines = [line for line in self._output().splitlines() if line.strip() and not line.startswith("\tat ")]
        return ProcessFailed("\n    ".join([f"{self.name} {what}", *lines[-_TAIL_LINES:]]))

    async def stop(self, grace: float = 10.0) -> None:
        """Send SIGTERM to the process; after its end or ``grace`` seconds, send SIGKILL to the rest of its session."""
        try:
            if self.running:
                self._process.terminate()
                async with asyncio.timeout(grace):
                    await self._process.wait()
        except TimeoutError:
            log.warning("process killed, it did not stop when asked", extra={"fields": {"process": self.name}})
        finally:
            await self.kill()

    async def kill(self) -> None:
        """Kill its session, and return when no process of it remains. Further calls do nothing."""
        if self._ended:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        # Some children, such as PySpark's, make their own groups, but they stay in the session.
        while others := _in_session(self.pid):
            for other in others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(other, signal.SIGKILL)
            await asyncio.sleep(_POLL_SECONDS)
        await self._process.wait()
        self._ended = True

    def _output(self) -> str:
        """The output of this process so far; the log file may hold its predecessors' output too."""
        with self.log_file.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")


def _in_session(session: int) -> list[int]:
    """The processes of a session that still run; see proc(5) for the fields after the command's name."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _parent, _group, its_session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(its_session) == session and state not in "ZX":
                found.append(int(entry.name))
    return found


def _appending(path: Path) -> BinaryIO:
    return path.open("ab")
