"""The driver's end of the seats: a server that the tasks of a slice ask what to do, and by which it ends the slice."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence

from appliance.errors import PeerError
from appliance.listening import port_refused
from appliance.replicator.allowance import share
from appliance.replicator.seat_tls import seat_tls
from appliance.replicator.seating import (
    STOP,
    Notice,
    Seat,
    decode_hello,
    decode_notice,
    encode_seat,
    encode_share,
    seat_for,
)
from appliance.settings.target import Target
from appliance.settings.values import Side

log = logging.getLogger("appliance.replicator")

_LINE_MAX = 64 * 1024 * 1024


class SeatServer:
    """Gives each task that connects a seat, tells ``notice`` what they say, and says stop to all at once.

    ``unseated`` is set when a task of the open slice has found no seat free: Spark has given up one that still has its
    own, and is silent.
    """

    def __init__(self, host: str, notice: Callable[[Notice], None], port: int = 0, *, encrypted: bool = False) -> None:
        self.token = secrets.token_urlsafe(32)
        self.unseated = asyncio.Event()
        self._host = host
        self._port = port
        self._encrypted = encrypted
        self._notice = notice
        self._server: asyncio.Server | None = None
        self._free: dict[int, Seat] = {}
        self._homes: dict[int, str] = {}
        self._seated: dict[asyncio.StreamWriter, int] = {}
        self._open: dict[int, Seat] = {}
        self._bound = 0

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        assert self._server is not None
        host, port, *_ = self._server.sockets[0].getsockname()
        return str(host), int(port)

    async def start(self) -> None:
        """Listen.

        Raises:
            SettingsError: the port cannot be had.
        """
        context = seat_tls(self.token, Side.SOURCE) if self._encrypted else None
        with port_refused("SPARK_DRIVER_PORT", Target(self._host, self._port)):
            self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=_LINE_MAX, ssl=context)

    async def close(self) -> None:
        """Say stop, and listen no more."""
        self.stop()
        if self._server is not None:
            self._server.close()
            for writer in list(self._seated):
                writer.close()
            await self._server.wait_closed()

    def open(self, seats: Sequence[Seat]) -> None:
        """A new slice begins, with these seats."""
        self._open = dict(enumerate(seats))
        self._free = dict(self._open)
        self.unseated.clear()

    def bound(self, bytes_per_second: int) -> None:
        """All tasks together read so much in a second, at most, from now on; 0: as much as comes."""
        self._bound = bytes_per_second
        for writer in self._seated if self._open else ():
            writer.write(encode_share(self._share))

    @property
    def _share(self) -> int:
        """Each task's that has partitions: every seat's."""
        return share(self._bound, len(self._open))

    def stop(self) -> None:
        """End the slice: the tasks finish what they have begun; whoever comes later gets nothing to do."""
        self._open = {}
        self._free = {}
        for writer in self._seated:
            writer.write(STOP)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = decode_hello(await reader.readline())
            if not secrets.compare_digest(hello.token, self.token):
                raise PeerError("a task came with another driver's token")
            await self._seat(hello.worker, reader, writer)
        except (PeerError, OSError) as error:
            log.warning("a task's connection ended", extra={"fields": {"cause": str(error)}})
        finally:
            writer.close()

    async def _seat(self, worker: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = seat_for(worker, self._free, self._homes)
        if number is None:
            if self._open:
                self.unseated.set()
            return
        seat = self._free.pop(number)
        self._homes[number] = worker
        self._seated[writer] = number
        try:
            writer.write(encode_seat(seat) + encode_share(self._share))
            while line := await reader.readline():
                self._notice(decode_notice(line))
        finally:
            del self._seated[writer]
            if self._open.get(number) is seat:
                # The task has failed: the seat is free for the one that Spark starts in its place. A seat of a slice
                # that has ended is nobody's any more, however late its task ends.
                self._free[number] = seat
                self._homes.pop(number, None)
