import asyncio
import logging

import pytest

from appliance.errors import SettingsError
from appliance.runtime import background
from appliance.runtime.background import in_background

log = logging.getLogger("appliance.test")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_RETRY", 0.0)


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
