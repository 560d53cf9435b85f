"""The control connections of the tasks, on real sockets."""

import asyncio
import contextlib
import socket
import ssl
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest

from appliance.engine.control import server as control_server
from appliance.engine.control.assignment import (
    Assignment,
    CopySums,
    Hello,
    Notice,
    Report,
    encode_assignment,
    encode_message,
)
from appliance.engine.control.client import ControlClient, DriverEndpoint, control_client
from appliance.engine.control.connection import REPORT_MAX, Stream, dialled
from appliance.engine.control.server import ControlServer
from appliance.errors import ApplianceError, PeerError, SettingsError, Unreachable
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.position import SourcePlace
from appliance.settings.target import Target
from tests.support.patience import PATIENCE

ON_A_PORT = Target("127.0.0.1", 0)
A, B, C = (Assignment(bytes_per_second=number) for number in (1, 2, 3))
"""Two assignments, which differ in their share of the bound."""


def unheard(task: int, report: Report) -> None:
    raise AssertionError((task, report))


def unseen(task: int) -> None:
    """Called when a task begins."""


@contextlib.asynccontextmanager
async def server(
    at: Target | None = None,
    strangers_max: int = 3,
    hello_seconds: float = PATIENCE,
    begun: Callable[[int], None] = unseen,
    heard: Callable[[int, Report], None] = unheard,
) -> AsyncIterator[ControlServer]:
    """The driver's end: in local mode, or between hosts if ``at`` is an address."""
    with tempfile.TemporaryDirectory() as directory:
        async with asyncio.timeout(PATIENCE):
            control = ControlServer(at or Path(directory, "control"), begun, heard, strangers_max, hello_seconds)
            control.start()
            try:
                yield control
            finally:
                await control.close()


def endpoint(control: ControlServer) -> DriverEndpoint:
    at = control.address
    return DriverEndpoint(str(at) if isinstance(at, Path) else (at.host, at.port), control.token, "run", 1)


class Task:
    """One try of a task."""

    def __init__(self, client: ControlClient) -> None:
        self.client = client
        self._assignments = client.assignments()

    async def assignment(self) -> Assignment | None:
        """The next assignment; None for a stop.

        Raises:
            Unreachable: the connection has ended.
        """
        return await anext(self._assignments, None)


@contextlib.asynccontextmanager
async def task_of(control: ControlServer, number: int = 0, attempt: int = 0) -> AsyncIterator[Task]:
    async with control_client(endpoint(control), Hello(number, attempt)) as client:
        yield Task(client)


async def test_each_task_of_a_job_gets_the_assignment_of_its_number() -> None:
    async with server() as control:
        control.assign([A, B])
        async with task_of(control, 1) as second, task_of(control, 0) as first:
            assert await first.assignment() == A
            assert await second.assignment() == B


async def test_a_task_is_told_when_its_assignment_changes_and_not_when_anothers_does() -> None:
    async with server() as control:
        control.assign([A, B])
        async with task_of(control, 0) as first, task_of(control, 1) as second:
            assert (await first.assignment(), await second.assignment()) == (A, B)
            control.assign([A, C])
            control.assign([B, C])
            assert (await first.assignment(), await second.assignment()) == (B, C)


async def test_the_second_try_of_a_task_gets_the_firsts_assignment() -> None:
    async with server() as control:
        control.assign([A, B])
        async with task_of(control, 1, attempt=1) as first:
            assert await first.assignment() == B
        async with task_of(control, 1, attempt=2) as second:
            assert await second.assignment() == B


async def test_case_6_a_task_in_place_of_one_that_is_silent_gets_its_assignment_at_once() -> None:
    # Before, it got no lanes, and the silent task's lanes were not copied.
    begun: list[int] = []
    async with server(begun=begun.append) as control:
        control.assign([A])
        async with task_of(control, attempt=1) as silent, task_of(control, attempt=2) as other:
            assert await silent.assignment() == A
            assert await other.assignment() == A
            with pytest.raises(Unreachable):
                await silent.assignment()
    assert begun == [0, 0]


async def test_reports_of_a_task_whose_place_was_taken_are_not_heard() -> None:
    heard: list[Report] = []
    told = asyncio.Event()

    def hear(_: int, report: Report) -> None:
        heard.append(report)
        told.set()

    async with server(heard=hear) as control:
        control.assign([A])
        async with task_of(control, attempt=1) as silent:
            assert await silent.assignment() == A
            async with task_of(control, attempt=2) as other:
                assert await other.assignment() == A
                silent.client.report(Notice("lane 0", "late", "Superseded"))
                other.client.report(Notice("lane 0", "in time", "Superseded"))
                await told.wait()
    assert heard == [Notice("lane 0", "in time", "Superseded")]


async def test_an_earlier_try_that_comes_late_takes_nobodys_place() -> None:
    async with server() as control:
        control.assign([A])
        async with task_of(control, attempt=2) as newest:
            assert await newest.assignment() == A
            async with task_of(control, attempt=1) as late:
                with pytest.raises(Unreachable):
                    await late.assignment()
            control.assign([B])
            assert await newest.assignment() == B


async def test_a_task_that_comes_when_the_job_has_ended_is_told_to_stop() -> None:
    async with server() as control:
        control.assign([A])
        control.stop()
        async with task_of(control) as late:
            assert await late.assignment() is None


async def test_case_3_a_task_of_a_job_that_has_ended_gets_no_assignment_of_the_next() -> None:
    # Before, its lanes also went to the next task, and two tasks had the same lanes.
    async with server() as control:
        control.assign([A, B])
        async with task_of(control, 1, attempt=2) as late:
            assert await late.assignment() == B
            control.stop()
            assert await late.assignment() is None
            control.assign([C])
            async with task_of(control, 0, attempt=3) as in_time, task_of(control, 1, attempt=1) as of_no_job:
                assert await in_time.assignment() == C
                with pytest.raises(Unreachable):
                    await of_no_job.assignment()


async def test_case_65_a_task_that_does_not_read_is_cut_off_and_no_assignments_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, the driver kept all assignments that a hanging task did not read.
    monkeypatch.setattr(control_server, "_TAKE_SECONDS", 0.1)
    topics = {
        "t" * 10_000 + str(number): StartOffsets("t", uuid.UUID(int=1), (SourcePlace(0, 0),)) for number in range(100)
    }
    begun = asyncio.Event()
    async with server(begun=lambda _: begun.set()) as control:
        control.assign([A])
        _, writer = await dialled(control.address, control.token)
        cast("asyncio.Transport", writer.transport).pause_reading()
        writer.write(encode_message(Hello(0, 0)))
        await begun.wait()
        (task,) = control._tasks.values()
        buffered = []
        while control._tasks and len(buffered) < 500:
            control.assign([Assignment({}, topics, len(buffered))])
            await asyncio.sleep(0.01)
            buffered.append(task.writer.transport.get_write_buffer_size())
        assert not control._tasks
        assert max(buffered) < 2 * len(encode_assignment(Assignment({}, topics)))
        writer.close()


async def test_a_tasks_reports_are_heard_with_its_number() -> None:
    heard: asyncio.Queue[tuple[int, Report]] = asyncio.Queue()
    said = [Notice("lane 1", "no", "BrokerBusy"), CopySums(10, 900, 1, 2, 1)]
    async with server(heard=lambda task, report: heard.put_nowait((task, report))) as control:
        control.assign([A, B])
        async with task_of(control, 1) as task:
            for report in said:
                task.client.report(report)
        assert [await heard.get() for _ in said] == [(1, report) for report in said]


async def test_a_task_that_is_told_to_stop_has_not_failed() -> None:
    async with server() as control:
        control.assign([A])
        async with task_of(control) as task:
            assert await task.assignment() == A
            control.stop()
            assert await task.assignment() is None


@pytest.mark.parametrize(
    ("said", "fault"), [(b"", Unreachable), (b"half a l", PeerError), (b"a line that is too long" * 10, PeerError)]
)
async def test_a_task_whose_driver_is_lost_or_not_understood_has_failed(
    said: bytes, fault: type[ApplianceError]
) -> None:
    reader = asyncio.StreamReader(limit=10)
    reader.feed_data(said)
    reader.feed_eof()
    one, other = socket.socketpair()
    with one:
        _, writer = await asyncio.open_connection(sock=other)
        with pytest.raises(fault):
            await anext(ControlClient((reader, writer)).assignments())
        writer.close()


async def test_between_hosts_a_task_has_its_assignment_through_tls() -> None:
    async with server(ON_A_PORT) as control:
        control.assign([A])
        async with task_of(control) as task:
            assert await task.assignment() == A


async def test_between_hosts_nobody_is_heard_who_was_not_given_the_token() -> None:
    async with server(ON_A_PORT) as control:
        control.assign([A])
        with pytest.raises(ssl.SSLError):
            await dialled(control.address, "of another run")
        assert await answer(await stranger(control), encode_message(Hello(0, 0))) == b""
        async with task_of(control) as task:
            assert await task.assignment() == A


async def test_between_hosts_whoever_takes_the_port_is_not_told_the_token() -> None:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result(await reader.read(2**16))
        writer.close()

    async with asyncio.timeout(PATIENCE), await asyncio.start_server(listen, "127.0.0.1", 0) as listener:
        with pytest.raises(ConnectionError):
            await dialled(Target("127.0.0.1", listener.sockets[0].getsockname()[1]), "of this run")
        assert (await heard)[:1] == b"\x16"  # a handshake of TLS
        assert b"of this run" not in heard.result()


async def test_in_local_mode_the_control_connections_are_on_no_port_and_only_their_user_opens_them() -> None:
    async with server() as control:
        assert isinstance(control.address, Path)
        assert control.address.is_socket()
        assert control.address.parent.stat().st_mode & 0o077 == 0


async def test_the_path_of_the_listener_may_be_longer_than_a_sockets() -> None:
    with tempfile.TemporaryDirectory(prefix="long" * 40) as directory:
        control = ControlServer(Path(directory, "control"), unseen, unheard)
        control.start()
        control.assign([A])
        async with task_of(control) as task:
            assert await task.assignment() == A
        await control.close()


async def stranger(control: ControlServer) -> Stream:
    """A plain-text connection that has not authenticated itself."""
    if isinstance(control.address, Path):
        return await dialled(control.address, "")
    return await asyncio.open_connection(control.address.host, control.address.port)


async def answer(stream: Stream, words: bytes = b"") -> bytes:
    """The response up to the end of the connection."""
    reader, writer = stream
    with contextlib.suppress(ConnectionError):
        writer.write(words)
        return await reader.read()
    return b""


WAYS = pytest.mark.parametrize("at", [None, ON_A_PORT], ids=["local", "between hosts"])


@WAYS
async def test_strangers_that_hold_connections_keep_no_task_from_its_assignment(at: Target | None) -> None:
    async with server(at) as control:
        control.assign([A])
        silent = [await stranger(control) for _ in range(20)]
        async with task_of(control) as task:
            assert await task.assignment() == A
        ended = [await answer(each) for each in silent[:17]]
        assert ended == [b""] * 17
        for _, writer in silent:
            writer.close()


@WAYS
async def test_a_stranger_that_says_nothing_is_let_go(at: Target | None) -> None:
    async with server(at, hello_seconds=0.01) as control:
        assert await answer(await stranger(control)) == b""


@WAYS
@pytest.mark.parametrize(
    "words",
    [
        b"\xff\xfe\xff\xfe\n",  # five bytes, which TLS recognises as no record
        b'{"task": 1}\n',
        b'{"task": -1, "attempt": 0}\n',
        b'["task"]\n',
        b"x" * (3 * REPORT_MAX),
        b"\n\n\n\n\n",
    ],
)
async def test_nonsense_from_a_stranger_is_the_end_of_it_alone(at: Target | None, words: bytes) -> None:
    async with server(at) as control:
        control.assign([A])
        assert await answer(await stranger(control), words) == b""
        async with task_of(control) as task:
            assert await task.assignment() == A


async def test_a_task_that_has_its_assignment_does_not_count_as_a_stranger() -> None:
    async with server(strangers_max=1) as control:
        control.assign([A, B])
        async with task_of(control, 0) as first:
            assert await first.assignment() == A
            late = [await stranger(control) for _ in range(5)]
            async with task_of(control, 1) as second:
                assert await second.assignment() == B
            control.stop()
            assert await first.assignment() is None
            for _, writer in late:
                writer.close()


async def test_between_hosts_a_peer_that_is_gone_is_noticed() -> None:
    async with server(ON_A_PORT) as control:
        _, writer = await dialled(control.address, control.token)
        connection = writer.get_extra_info("socket")
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        writer.close()


async def test_a_port_that_is_taken_is_a_fault_of_the_settings() -> None:
    async with server(ON_A_PORT) as control:
        assert isinstance(control.address, Target)
        with pytest.raises(SettingsError, match=r"SPARK_DRIVER_PORT: cannot listen on 127\.0\.0\.1"):
            ControlServer(control.address, unseen, unheard).start()
