"""The far end is asked in the background, by one request at a time, and only when somebody looks."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from appliance.errors import ApplianceError, TargetRefused, TimedOut
from appliance.gateway.model.far_view import OLDER_RELEASE_SECONDS, REFRESH_SECONDS
from appliance.gateway.status import FarEnd
from tests.support.virtual_time import run

LINK = "orange-grape"


class Far:
    """A far end that counts its requests, and answers each after ``seconds``, or fails."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.seconds = seconds
        self.asked = 0
        self.fault: Exception | None = None

    async def ask(self) -> bytes:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        if self.fault:
            raise self.fault
        return json.dumps({"side": "source", "link": LINK, "number": self.asked}).encode()


@contextlib.asynccontextmanager
async def running(far: Far) -> AsyncIterator[FarEnd]:
    end = FarEnd(far.ask, LINK)
    task = asyncio.create_task(end.run())
    try:
        yield end
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_nobody_who_looks_costs_nothing() -> None:
    async def work() -> int:
        far = Far()
        async with running(far):
            await asyncio.sleep(3600)
        return far.asked

    assert run(work()) == 0


def test_all_who_look_at_once_make_one_request_and_none_waits_for_it() -> None:
    async def work() -> None:
        far = Far()
        async with running(far) as end:
            assert {end.newest().document for _ in range(100)} == {None}
            await asyncio.sleep(0.05)
            assert end.newest().document is None
            await asyncio.sleep(0.06)
            for _ in range(100):
                document = end.newest().document
                assert document is not None
                assert document["number"] == 1
            await asyncio.sleep(REFRESH_SECONDS - 0.1)
            assert far.asked == 1

    run(work())


def test_an_old_answer_is_shown_at_once_and_renewed_behind_it() -> None:
    async def work() -> list[object]:
        far = Far()
        shown = []
        async with running(far) as end:
            for _ in range(3):
                document = end.newest().document
                shown.append(document and document["number"])
                await asyncio.sleep(REFRESH_SECONDS + 0.2)
        assert far.asked == 3
        return shown

    assert run(work()) == [None, 1, 2]


@pytest.mark.parametrize(
    ("fault", "requests"),
    [(TimedOut("silent"), 10 * 60 // (REFRESH_SECONDS + 1)), (TargetRefused("?"), 10 * 60 // OLDER_RELEASE_SECONDS)],
    ids=["silent", "older release"],
)
def test_a_page_that_is_looked_at_for_ten_minutes_asks_an_older_release_twice(
    fault: ApplianceError, requests: float
) -> None:
    async def work() -> int:
        far = Far()
        far.fault = fault
        async with running(far) as end:
            for _ in range(10 * 60 - 1):
                end.newest()
                await asyncio.sleep(1)
            assert end.newest().failure
        return far.asked

    assert run(work()) == requests


def test_a_far_end_that_has_been_upgraded_is_shown_after_the_pause() -> None:
    async def work() -> None:
        far = Far()
        far.fault = TargetRefused("?")
        async with running(far) as end:
            end.newest()
            await asyncio.sleep(1)
            far.fault = None
            for _ in range(2):
                assert end.newest().document is None
                await asyncio.sleep(OLDER_RELEASE_SECONDS + 1)
            view = end.newest()
            assert (view.failure, view.document) == (None, {"side": "source", "link": LINK, "number": 2})

    run(work())


def test_a_request_that_is_cut_off_by_the_stop_leaves_no_task() -> None:
    async def work() -> None:
        before = asyncio.all_tasks()
        async with running(Far(seconds=3600)) as end:
            end.newest()
            await asyncio.sleep(1)
        assert asyncio.all_tasks() == before

    run(work())


def test_a_defect_is_raised_to_the_log_and_shown_and_the_next_run_asks_again() -> None:
    async def work() -> None:
        far = Far()
        far.fault = RuntimeError("?")
        end = FarEnd(far.ask, LINK)
        end.newest()
        with pytest.raises(RuntimeError):
            await end.run()
        assert end.newest().failure
        far.fault = None
        async with running(far):
            await asyncio.sleep(REFRESH_SECONDS)
            end.newest()
        again = asyncio.create_task(end.run())
        await asyncio.sleep(1)
        again.cancel()
        assert end.newest().document

    run(work())
