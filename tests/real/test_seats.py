"""The seats of the tasks, over real connections."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest

from appliance.errors import SettingsError
from appliance.replicator.seat_tls import seat_tls
from appliance.replicator.seating import STOP, Hello, Notice, Seat, decode_seat, decode_share, encode_hello
from appliance.replicator.seats import SeatServer
from appliance.settings.values import Side
from tests.support.patience import PATIENCE


def seat(number: int) -> Seat:
    """Any seat of a slice."""
    return Seat(number, {}, {})


def unheard(notice: Notice) -> None:
    raise AssertionError(notice)


@contextlib.asynccontextmanager
async def server(*, encrypted: bool = False) -> AsyncIterator[SeatServer]:
    async with asyncio.timeout(PATIENCE):
        seats = SeatServer("127.0.0.1", unheard, encrypted=encrypted)
        await seats.start()
        try:
            yield seats
        finally:
            await seats.close()


class Task:
    """What asks for a seat."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer
        self.share = -1

    async def seat(self) -> int | None:
        """The slice of the seat that it was given; none when it was given no seat."""
        line = await self.reader.readline()
        if not line:
            return None
        self.share = decode_share(await self.reader.readline())
        return decode_seat(line).slice

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


async def test_case_6_a_task_in_place_of_one_that_is_silent_ends_the_slice() -> None:
    # It was given nothing to do, and nobody copied the silent one's lanes until the slice's time was over.
    async with server() as seats:
        seats.open([seat(0)])
        async with task_of(seats, "silent") as silent:
            assert await silent.seat() == 0
            assert not seats.unseated.is_set()
            async with task_of(seats, "in its place") as other:
                assert await other.seat() is None
            await seats.unseated.wait()
            seats.open([seat(1)])
            assert not seats.unseated.is_set()


async def test_a_task_that_comes_when_the_slice_has_ended_is_not_missed() -> None:
    async with server() as seats:
        seats.open([seat(0)])
        seats.stop()
        async with task_of(seats, "late") as late:
            assert await late.seat() is None
        assert not seats.unseated.is_set()


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


async def test_each_task_is_told_its_share_of_the_bound_with_its_seat_and_when_it_changes() -> None:
    async with server() as seats:
        seats.bound(1000)
        seats.open([seat(0), seat(0)])
        async with task_of(seats, "one") as one, task_of(seats, "other") as other:
            for task in (one, other):
                assert (await task.seat(), task.share) == (0, 500)
            seats.bound(300)
            assert [decode_share(await task.reader.readline()) for task in (one, other)] == [150, 150]
            seats.bound(0)
            assert [decode_share(await task.reader.readline()) for task in (one, other)] == [0, 0]


async def dialled(seats: SeatServer, token: str) -> bytes:
    """What a task of a cluster is answered that was given this token."""
    context = seat_tls(token, Side.DESTINATION)
    reader, writer = await asyncio.open_connection(*seats.address, ssl=context)
    writer.write(encode_hello(Hello(seats.token, "worker", -1)))
    try:
        return await reader.readline()
    finally:
        writer.close()


async def test_between_hosts_a_task_has_its_seat_through_tls() -> None:
    async with server(encrypted=True) as seats:
        seats.open([seat(0)])
        assert decode_seat(await dialled(seats, seats.token)).slice == 0


async def test_between_hosts_nobody_is_heard_who_was_not_given_the_token() -> None:
    async with server(encrypted=True) as seats:
        seats.open([seat(0)])
        with pytest.raises(ssl.SSLError):
            await dialled(seats, "of another run")
        async with task_of(seats, "in the clear") as stranger:
            with contextlib.suppress(ConnectionError):
                assert await stranger.reader.readline() == b""
        assert decode_seat(await dialled(seats, seats.token)).slice == 0


async def test_a_port_that_is_taken_is_a_fault_of_the_settings() -> None:
    async with server() as seats:
        other = SeatServer("127.0.0.1", unheard, seats.address[1])
        with pytest.raises(SettingsError, match=r"SPARK_DRIVER_PORT: cannot listen on 127\.0\.0\.1"):
            await other.start()
