"""The driver's end of the seats: a server that the tasks of a slice ask what to do, and by which it ends the slice."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from appliance.replicator.read.allowance import share
from appliance.replicator.spark.seat_door import HELLO_SECONDS, STRANGERS_MAX, SeatDoor
from appliance.replicator.spark.seat_sockets import seat_line
from appliance.replicator.spark.seating import (
    STOP,
    Notice,
    Seat,
    decode_notice,
    encode_seat,
    encode_share,
    seat_for,
)
from appliance.settings.target import Target


class SeatServer:
    """Gives each task that connects a seat, tells ``notice`` what they say, and says stop to all at once.

    ``unseated`` is set when a task of the open slice has found no seat free: Spark has given up one that still has its
    own, and is silent. For the other arguments see ``SeatDoor``.
    """

    def __init__(
        self,
        at: Path | Target,
        notice: Callable[[Notice], None],
        strangers_max: int = STRANGERS_MAX,
        hello_seconds: float = HELLO_SECONDS,
    ) -> None:
        self.unseated = asyncio.Event()
        self._strangers_max = strangers_max
        self._door = SeatDoor(at, self._seat, strangers_max, hello_seconds)
        self._notice = notice
        self._free: dict[int, Seat] = {}
        self._homes: dict[int, str] = {}
        self._seated: dict[asyncio.StreamWriter, int] = {}
        self._open: dict[int, Seat] = {}
        self._bound = 0

    @property
    def address(self) -> Path | Target:
        """Where it listens."""
        return self._door.address

    @property
    def token(self) -> str:
        """With which a task proves on a port that it is this run's."""
        return self._door.token

    def start(self) -> None:
        """Listen.

        Raises:
            SettingsError: the port cannot be had.
        """
        self._door.open()

    async def close(self) -> None:
        """Say stop, and listen no more."""
        self.stop()
        await self._door.close()

    def open(self, seats: Sequence[Seat]) -> None:
        """A new slice begins, with these seats."""
        self._open = dict(enumerate(seats))
        self._free = dict(self._open)
        self._door.strangers_max = max(self._strangers_max, 2 * len(seats))
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
            while line := await seat_line(reader):
                self._notice(decode_notice(line))
        finally:
            del self._seated[writer]
            if self._open.get(number) is seat:
                # The task has failed: the seat is free for the one that Spark starts in its place. A seat of a slice
                # that has ended is nobody's any more, however late its task ends.
                self._free[number] = seat
                self._homes.pop(number, None)
