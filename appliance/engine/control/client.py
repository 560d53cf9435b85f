"""A task's end of its control connection."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from appliance.engine.control.assignment import Assignment, Hello, Report, decode_assignment, encode_message
from appliance.engine.control.connection import DIAL_SECONDS, Stream, dialled, read_line
from appliance.errors import Unreachable
from appliance.runtime.background import ends_within
from appliance.settings.target import Target

_FLUSH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class DriverEndpoint:
    """The driver's address for a task: a file, or a host and port, where both ends know the token.

    ``run`` and ``generation`` name the replicator's process, as in ``Owner``. ``on_transform_error`` is the reaction to
    a record that the link's SQL fails on, empty if records are copied as they are: only the driver's host has the SQL.
    """

    at: str | tuple[str, int]
    token: str
    run: str
    generation: int
    on_transform_error: str = ""


def transform_socket(control: Path, task: int) -> Path:
    """The socket of a task's SQL, beside the driver's own: in local mode both are of one host."""
    return control.with_name(f"transform-{task}")


class ControlClient:
    """The connection; ``control_client`` opens and closes it."""

    def __init__(self, stream: Stream) -> None:
        self._reader, self._writer = stream

    @property
    def own_host(self) -> str:
        """The address of this host on the way to the driver, between hosts."""
        return str(self._writer.get_extra_info("sockname")[0])

    async def assignments(self) -> AsyncIterator[Assignment]:
        """The task's assignments, until the driver sends a stop; it may be gone before, or have replaced this task."""
        while True:
            try:
                line = await read_line(self._reader)
            except OSError as error:
                raise Unreachable(f"the replicator is lost: {error}") from error
            if not line:
                raise Unreachable("the replicator has ended the connection")
            assignment = decode_assignment(line)
            if assignment is None:
                return
            yield assignment

    def report(self, report: Report | Target) -> None:
        """Send a report or its address to the driver."""
        self._writer.write(encode_message(report))

    async def close(self) -> None:
        """End the connection once everything is sent, or nobody reads it."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await ends_within(_FLUSH_SECONDS, self._writer.wait_closed())


@contextlib.asynccontextmanager
async def control_client(endpoint: DriverEndpoint, hello: Hello) -> AsyncIterator[ControlClient]:
    """A connection to the driver, after the hello."""
    at = Path(endpoint.at) if isinstance(endpoint.at, str) else Target(*endpoint.at)
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            stream = await dialled(at, endpoint.token)
    except OSError as error:
        cause = f"SPARK_DRIVER_HOST, SPARK_DRIVER_PORT: {error or 'no answer in time'}"
        raise Unreachable(f"{socket.gethostname()} does not reach the replicator at {at}: {cause}") from error
    stream[1].write(encode_message(hello))
    client = ControlClient(stream)
    try:
        yield client
    finally:
        await client.close()
