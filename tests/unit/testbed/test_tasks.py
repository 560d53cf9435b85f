"""Work in threads and simultaneous tasks does not outlive its caller."""

import asyncio
import threading

import pytest

from appliance.errors import ProcessFailed
from testbed.tasks import end, failure_of, in_thread, to_the_end, together, watched


async def fail() -> None:
    raise ProcessFailed("first")


async def test_a_threads_result_is_returned():
    assert await in_thread(lambda stopping: stopping.is_set()) is False


async def test_a_thread_whose_caller_is_cancelled_is_told_and_awaited():
    began, over = threading.Event(), threading.Event()

    def work(stopping: threading.Event) -> None:
        began.set()
        stopping.wait()
        over.set()

    task = asyncio.create_task(in_thread(work), name="caller")
    await asyncio.to_thread(began.wait)
    await end(task)
    assert task.cancelled()
    assert over.is_set()


async def test_cleaning_up_is_not_disturbed_by_being_cancelled():
    began, go_on, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def clean() -> None:
        began.set()
        await go_on.wait()
        over.set()

    task = asyncio.create_task(to_the_end(clean()), name="caller")
    await began.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert over.is_set()


async def test_the_first_failure_ends_the_others_and_is_raised_as_it_is():
    endless = asyncio.Event()
    with pytest.raises(ProcessFailed, match="first"):
        await together(good=endless.wait(), bad=fail())
    assert len(asyncio.all_tasks()) == 1


async def test_watched_work_returns_its_result_and_ends_the_watch():
    endless = asyncio.Event()

    async def watch() -> None:
        await endless.wait()

    assert await watched(asyncio.sleep(0, "result"), watch()) == "result"
    assert len(asyncio.all_tasks()) == 1


async def test_a_failure_of_the_watch_ends_the_work():
    endless = asyncio.Event()
    with pytest.raises(ProcessFailed, match="first"):
        await watched(endless.wait(), fail())
    assert len(asyncio.all_tasks()) == 1


async def test_a_watch_that_ends_well_leaves_the_work_to_go_on():
    go_on = asyncio.Event()

    async def work() -> str:
        await go_on.wait()
        return "result"

    async def watch() -> None:
        asyncio.get_running_loop().call_soon(go_on.set)

    assert await watched(work(), watch()) == "result"


async def test_the_failure_of_a_task_is_raised_and_its_success_is_not():
    await failure_of(asyncio.create_task(asyncio.sleep(0), name="good"))
    with pytest.raises(ProcessFailed, match="first"):
        await failure_of(asyncio.create_task(fail(), name="bad"))
