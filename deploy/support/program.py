"""Running a program for its output: bounded in time and size, and ended with all that it has started."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from appliance.runtime.background import ended, ends_within
from appliance.runtime.child_process import killed_with_parent

BYTES_MAX = 32 * 1024 * 1024
"""Bound of an output; of a longer one the end is taken."""


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a program; ``fault`` is empty, or the failure with the last line that the program wrote.

    That line is whole: it may have a secret, and half of it would not be recognized.
    """

    text: bytes
    fault: str = ""


async def output_of(
    command: Sequence[str], seconds: float, *, whole: bool = False, reads_stdin: bool = False
) -> Output:
    """Run a program; ``whole`` takes stderr into its output too, where otherwise it only explains a failure."""
    with tempfile.TemporaryFile() as written, tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *killed_with_parent(command),
            stdin=None if reads_stdin else asyncio.subprocess.DEVNULL,
            stdout=written,
            stderr=written if whole else errors,
            start_new_session=True,
        )
        try:
            in_time = await ends_within(seconds, process.wait())
        finally:
            await _end(process)
        *_, cause = ("", *last_bytes(errors).decode("utf-8", "replace").strip().splitlines())
        status = f"ended with {process.returncode}" if in_time else f"did not end within {seconds:g} s"
        fault = "" if in_time and process.returncode == 0 else ": ".join(filter(None, [status, cause.strip()]))
        return Output(last_bytes(written), fault)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End it as Ctrl-C does, which lets Compose remove its container; after some seconds kill its session."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        await ended(process)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def last_bytes(file: IO[bytes]) -> bytes:
    """The content of a file; of a long one the whole lines at its end, since half a secret would not be recognized."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - BYTES_MAX))
    text = file.read()
    if size <= BYTES_MAX:
        return text
    return b"(the lines before this one are left out)\n" + text.partition(b"\n")[2]
