import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from appliance.engine.control import client as control_client
from appliance.engine.control.client import ControlClient
from appliance.errors import SettingsError
from appliance.runtime import background
from appliance.runtime.background import ended, ends_within, in_background
from appliance.tunnel.stream.tcp_channel import TcpChannel

log = logging.getLogger("appliance.test")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "RETRY_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("error", "line"),
    [(SettingsError(["X_LISTEN: taken"]), "X_LISTEN: taken"), (RuntimeError("a defect"), "cannot serve; it goes on")],
)
async def test_a_task_that_fails_repeatedly_is_logged_once_and_tried_until_it_works(
    error: Exception, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    attempts, works = 0, asyncio.Event()

    async def serve() -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 4:
            raise error
        works.set()
        await asyncio.Event().wait()

    async with in_background(log, "cannot {}; it goes on", serve=serve):
        await works.wait()
    assert caplog.messages == [line]


async def test_another_failure_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    failures, over = [RuntimeError("one"), RuntimeError("two"), RuntimeError("two")], asyncio.Event()

    async def watch() -> None:
        if failures:
            raise failures.pop(0)
        over.set()

    async with in_background(log, "cannot {}", watch=watch):
        await over.wait()
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["one", "two"]


async def test_the_work_ends_with_the_block_and_leaves_no_task() -> None:
    before = asyncio.all_tasks()

    async def wait() -> None:
        await asyncio.Event().wait()

    async with in_background(log, "cannot {}", one=wait, two=wait):
        assert {task.get_name() for task in asyncio.all_tasks() - before} == {
            "appliance.test one",
            "appliance.test two",
        }
    assert asyncio.all_tasks() == before


async def while_cancelled(cleanup: Callable[[], Awaitable[object]]) -> None:
    """Run a cleanup in a task that is being cancelled, to its end."""

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await cleanup()

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait([working])
    with pytest.raises(asyncio.CancelledError):
        working.result()


async def test_case_541_a_wait_in_a_task_that_is_being_cancelled_is_bounded_too() -> None:
    # On Python 3.11.2 asyncio.timeout raises CancelledError there: the wait went on.
    found: list[bool] = []

    async def wait() -> None:
        found.append(await ends_within(0.01, asyncio.Event().wait()))
        found.append(await ends_within(60.0, asyncio.sleep(0)))

    before = asyncio.all_tasks()
    await while_cancelled(wait)
    assert found == [False, True]
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_case_541_a_task_whose_driver_reads_nothing_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unread:
        def close(self) -> None: ...

        async def wait_closed(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(control_client, "_FLUSH_SECONDS", 0.01)
    stream = asyncio.StreamReader(), cast("asyncio.StreamWriter", Unread())
    await while_cancelled(ControlClient(stream).close)


async def test_case_541_a_process_that_ignores_the_end_is_killed() -> None:
    # On Python 3.11.2 it was not killed when its command was cut off by a signal.
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import signal; signal.pause()")
    await while_cancelled(lambda: ended(process, 0.01))
    assert process.returncode == -9


async def test_case_541_a_peer_that_does_not_close_holds_up_no_last_message() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    _, channel = await asyncio.get_running_loop().create_connection(TcpChannel, *server.sockets[0].getsockname()[:2])
    await while_cancelled(lambda: channel.finish(0.01))
    server.close()


async def test_an_error_of_what_is_waited_for_is_raised() -> None:
    async def fail() -> None:
        raise OSError("lost")

    with pytest.raises(OSError, match="lost"):
        await ends_within(60.0, fail())
