"""The seats of the tasks, over real connections."""

import asyncio
import contextlib
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.replicator.spark.seat_sockets import NOTICE_MAX, Stream, dialled_seat
from appliance.replicator.spark.seating import (
    STOP,
    Hello,
    Notice,
    Seat,
    decode_seat,
    decode_share,
    encode_hello,
)
from appliance.replicator.spark.seats import SeatServer
from appliance.settings.target import Target
from tests.support.patience import PATIENCE

ON_A_PORT = Target("127.0.0.1", 0)


def seat(number: int) -> Seat:
    """Any seat of a slice."""
    return Seat(number, {}, {})


def unheard(notice: Notice) -> None:
    raise AssertionError(notice)


@contextlib.asynccontextmanager
async def server(
    at: Target | None = None, strangers_max: int = 3, hello_seconds: float = PATIENCE
) -> AsyncIterator[SeatServer]:
    """The seats of local mode, or those between hosts when ``at`` is a port."""
    with tempfile.TemporaryDirectory() as directory:
        async with asyncio.timeout(PATIENCE):
            seats = SeatServer(at or Path(directory, "seats"), unheard, strangers_max, hello_seconds)
            seats.start()
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
        if self._writer.can_write_eof():  # not by TLS
            self._writer.write_eof()
            await self.reader.read()
        self._writer.close()


@contextlib.asynccontextmanager
async def task_of(seats: SeatServer, worker: str) -> AsyncIterator[Task]:
    reader, writer = await dialled_seat(seats.address, seats.token)
    writer.write(encode_hello(Hello(worker, -1)))
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


async def test_between_hosts_a_task_has_its_seat_through_tls() -> None:
    async with server(ON_A_PORT) as seats:
        seats.open([seat(0)])
        async with task_of(seats, "worker") as task:
            assert await task.seat() == 0


async def test_between_hosts_nobody_is_heard_who_was_not_given_the_token() -> None:
    async with server(ON_A_PORT) as seats:
        seats.open([seat(0)])
        with pytest.raises(ssl.SSLError):
            await dialled_seat(seats.address, "of another run")
        assert await answer(await stranger(seats), encode_hello(Hello("in the clear", -1))) == b""
        async with task_of(seats, "worker") as task:
            assert await task.seat() == 0


async def test_between_hosts_whoever_takes_the_port_is_not_told_the_token() -> None:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result(await reader.read(2**16))
        writer.close()

    async with asyncio.timeout(PATIENCE), await asyncio.start_server(listen, "127.0.0.1", 0) as listener:
        with pytest.raises(ConnectionError):
            await dialled_seat(Target("127.0.0.1", listener.sockets[0].getsockname()[1]), "of this run")
        assert (await heard)[:1] == b"\x16"  # a handshake of TLS
        assert b"of this run" not in heard.result()


async def test_in_local_mode_the_seats_are_on_no_port_and_only_their_user_opens_them() -> None:
    async with server() as seats:
        assert isinstance(seats.address, Path)
        assert seats.address.is_socket()
        assert seats.address.parent.stat().st_mode & 0o077 == 0


async def test_the_path_of_the_seats_may_be_longer_than_a_sockets() -> None:
    with tempfile.TemporaryDirectory(prefix="long" * 40) as directory:
        seats = SeatServer(Path(directory, "seats"), unheard)
        seats.start()
        seats.open([seat(0)])
        async with task_of(seats, "worker") as task:
            assert await task.seat() == 0
        await seats.close()


async def stranger(seats: SeatServer) -> Stream:
    """A connection in the clear of which nothing is known yet."""
    if isinstance(seats.address, Path):
        return await dialled_seat(seats.address, "")
    return await asyncio.open_connection(seats.address.host, seats.address.port)


async def answer(stream: Stream, words: bytes = b"") -> bytes:
    """All that is answered until the connection has ended."""
    reader, writer = stream
    with contextlib.suppress(ConnectionError):
        writer.write(words)
        return await reader.read()
    return b""


WAYS = pytest.mark.parametrize("at", [None, ON_A_PORT], ids=["local", "between hosts"])


@WAYS
async def test_strangers_that_hold_connections_keep_no_task_from_its_seat(at: Target | None) -> None:
    async with server(at) as seats:
        seats.open([seat(0)])
        silent = [await stranger(seats) for _ in range(20)]
        async with task_of(seats, "worker") as task:
            assert await task.seat() == 0
        ended = [await answer(each) for each in silent[:17]]
        assert ended == [b""] * 17
        for _, writer in silent:
            writer.close()


@WAYS
async def test_a_stranger_that_says_nothing_is_let_go(at: Target | None) -> None:
    async with server(at, hello_seconds=0.01) as seats:
        assert await answer(await stranger(seats)) == b""


@WAYS
@pytest.mark.parametrize("words", [b"\xff\xfe\n", b'{"worker": 1}\n', b"[]\n", b"x" * (3 * NOTICE_MAX), b"\n"])
async def test_nonsense_from_a_stranger_is_the_end_of_it_alone(at: Target | None, words: bytes) -> None:
    async with server(at) as seats:
        seats.open([seat(0)])
        assert await answer(await stranger(seats), words) == b""
        async with task_of(seats, "worker") as task:
            assert await task.seat() == 0


async def test_a_task_that_has_its_seat_does_not_count_as_a_stranger() -> None:
    async with server(strangers_max=1) as seats:
        seats.open([seat(0), seat(0)])
        async with task_of(seats, "first") as first:
            assert await first.seat() == 0
            late = [await stranger(seats) for _ in range(5)]
            async with task_of(seats, "second") as second:
                assert await second.seat() == 0
            seats.stop()
            assert await first.reader.readline() == STOP
            for _, writer in late:
                writer.close()


async def test_between_hosts_a_peer_that_is_gone_is_noticed() -> None:
    async with server(ON_A_PORT) as seats:
        _, writer = await dialled_seat(seats.address, seats.token)
        connection = writer.get_extra_info("socket")
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        writer.close()


async def test_a_port_that_is_taken_is_a_fault_of_the_settings() -> None:
    async with server(ON_A_PORT) as seats:
        assert isinstance(seats.address, Target)
        with pytest.raises(SettingsError, match=r"SPARK_DRIVER_PORT: cannot listen on 127\.0\.0\.1"):
            SeatServer(seats.address, unheard).start()
