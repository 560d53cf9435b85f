"""The operator's commands, each in a process of its own: one at a time for a link, with its lines as they come."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from appliance.clock import now_ms
from appliance.console.model.actions import DOCTOR, Proposal
from appliance.errors import ApplianceError
from appliance.program import OPERATOR_VARIABLE
from appliance.runtime.background import ended
from appliance.runtime.child_process import killed_with_parent

_LINES_MAX = 400
_LINE_MAX = 1000
_OUTPUT_MAX = 1024 * 1024
_PROPOSED_MS = 600_000
"""Longest time between the end of a dry run and the command itself."""
_END_SECONDS = 5.0
"""Time that a command has to end when it is told to. Killed, the same command again finishes its work."""


class CommandBusy(ApplianceError):
    """Another command runs already."""


class CommandRun:
    """One run of a command; ``ended`` and ``exit_code`` are None while it runs. Times are in milliseconds."""

    def __init__(self, title: str, command: Sequence[str], user: str = "") -> None:
        self.title = title
        self.user = user
        self.command = tuple(command)
        self.began = now_ms()
        self.ended: int | None = None
        self.exit_code: int | None = None
        self.output = ""
        """The standard output; complete only after the end."""
        self.lines: deque[str] = deque(maxlen=_LINES_MAX)
        """The last lines of both outputs."""
        self.lines_before = 0
        """The number of lines before these."""

    async def run(self, env_file: Path) -> None:
        """Run the command to its end. If this is cancelled, the process is stopped and waited for."""
        name, *options = self.command
        line = [sys.executable, "-m", "appliance.cli", name, "--env-file", str(env_file), *options]
        try:
            process = await asyncio.create_subprocess_exec(
                *killed_with_parent(line),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_OUTPUT_MAX,
                env=os.environ | {"PYTHONUNBUFFERED": "1", OPERATOR_VARIABLE: self.user},
            )
        except (OSError, ValueError) as error:
            self._add(f"it cannot be started: {error}")
            self.ended, self.exit_code = now_ms(), 1
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read(process.stdout, keep=True), name=f"{name} stdout")
                group.create_task(self._read(process.stderr, keep=False), name=f"{name} stderr")
            await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await ended(process, _END_SECONDS)
            self.exit_code = process.returncode
            self.ended = now_ms()

    async def _read(self, stream: asyncio.StreamReader | None, *, keep: bool) -> None:
        assert stream is not None
        while raw := await _line_of(stream):
            text = raw.decode("utf-8", "replace")
            if keep and len(self.output) < _OUTPUT_MAX:
                self.output += text
            self._add(text.rstrip("\n")[:_LINE_MAX])

    def _add(self, line: str) -> None:
        self.lines_before += len(self.lines) == _LINES_MAX
        self.lines.append(line)


async def _line_of(stream: asyncio.StreamReader) -> bytes:
    """The next line; a mark in place of a part of one that is longer than the buffer."""
    try:
        return await stream.readline()
    except ValueError:
        return b"...\n"


class Commands:
    """The commands of one link: the one that runs, the last one, and the last diagnosis."""

    def __init__(self, env_file: Path) -> None:
        self.last: CommandRun | None = None
        self.diagnosis: CommandRun | None = None
        self.proposed: tuple[str, Proposal] | None = None
        """The proposal whose dry run is the last command, behind the session that it is for."""
        self._env_file = env_file
        self._running: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """True while a command runs."""
        return self._running is not None and not self._running.done()

    def proposal(self, session: str) -> Proposal | None:
        """The proposal whose dry run is the last command, for this session, some minutes ago at most."""
        run = self.last
        shown = run and not self.running and run.exit_code == 0 and run.ended and now_ms() - run.ended < _PROPOSED_MS
        return self.proposed[1] if shown and self.proposed and self.proposed[0] == session else None

    def propose(self, session: str, proposal: Proposal, user: str) -> None:
        """Start the dry run of a proposal."""
        self.start(f"{proposal.title}, dry run", proposal.dry_run, user=user)
        self.proposed = session, proposal

    def start(self, title: str, *commands: Sequence[str], user: str = "") -> None:
        """Start the commands, one after the other, in the name of ``user``, or of this process's if it is empty.

        Raises:
            CommandBusy: another one runs.
        """
        if self.running:
            raise CommandBusy("another command runs: wait for its end")
        self.proposed = None
        self._running = asyncio.create_task(self._run(title, commands, user), name="console command")

    async def _run(self, title: str, commands: Sequence[Sequence[str]], user: str) -> None:
        for command in commands:
            run = CommandRun(title, command, user)
            if command[0] == DOCTOR:
                self.diagnosis = run
            else:
                self.last = run
            await run.run(self._env_file)

    async def close(self) -> None:
        """Stop the running command. The same command again finishes its work."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
