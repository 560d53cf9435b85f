"""The seats of the tasks, over real connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from appliance.replicator.seating import STOP, Hello, Notice, Seat, decode_seat, encode_hello
from appliance.replicator.seats import SeatServer

SECONDS = 10.0


def seat(number: int) -> Seat:
    """Any seat of a slice."""
    return Seat(number, frozenset(), {})


def unheard(notice: Notice) -> None:
    raise AssertionError(notice)


@contextlib.asynccontextmanager
async def server() -> AsyncIterator[SeatServer]:
    async with asyncio.timeout(SECONDS):
        seats = SeatServer("127.0.0.1", unheard)
        await seats.start()
        try:
            yield seats
        finally:
            await seats.close()


class Task:
    """What asks for a seat."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer

    async def seat(self) -> int | None:
        """The slice of the seat that it was given; none when it was given no seat."""
        line = await self.reader.readline()
        return decode_seat(line).slice if line else None

    async def end(self) -> None:
        """Returns when the server has seen the end."""
        self._writer.write_eof()
        await self.reader.read()
        self._writer.close()


@contextlib.asynccontextmanager
async def task_of(seats: SeatServer, worker: str) -> AsyncIterator[Task]:
    reader, writer = await asyncio.open_connection(*seats.address)
    writer.write(encode_hello(Hello(seats.token, worker, -1)))
    task = Task(reader, writer)
    try:
        yield task
    finally:
        if not writer.is_closing():
            await task.end()


async def test_the_second_try_of_a_task_gets_the_firsts_seat() -> None:
    async with server() as seats:
        seats.open([seat(0)])
        async with task_of(seats, "first") as first:
            assert await first.seat() == 0
        async with task_of(seats, "second") as second:
            assert await second.seat() == 0


async def test_while_a_task_has_its_seat_nobody_else_gets_it() -> None:
    async with server() as seats:
        seats.open([seat(0)])
        async with task_of(seats, "first") as first, task_of(seats, "second") as second:
            assert await first.seat() == 0
            assert await second.seat() is None


async def test_case_3_a_seat_of_a_slice_that_has_ended_is_given_to_nobody() -> None:
    # A task that ended a slice late left its seat to the next one that came: two had the same lanes.
    async with server() as seats:
        seats.open([seat(0)])
        async with task_of(seats, "late") as late:
            assert await late.seat() == 0
            seats.stop()
            assert await late.reader.readline() == STOP
            seats.open([seat(1)])
            async with task_of(seats, "in time") as in_time:
                assert await in_time.seat() == 1
                await late.end()
                async with task_of(seats, "next") as following:
                    assert await following.seat() is None
