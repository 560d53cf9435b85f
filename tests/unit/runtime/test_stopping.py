import asyncio

import pytest

from appliance.errors import Unreachable
from appliance.runtime.background import unless_stopped


async def test_work_that_is_stopped_gives_nothing_and_leaves_nothing_running() -> None:
    stopping, ended = asyncio.Event(), asyncio.Event()

    async def work_for_ever() -> int:
        stopping.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 1

    assert await unless_stopped(stopping, work_for_ever()) is None
    assert ended.is_set()


async def test_work_that_ends_is_returned_or_raised() -> None:
    async def work() -> int:
        return 1

    async def fail() -> int:
        raise Unreachable("nobody answers")

    assert await unless_stopped(asyncio.Event(), work()) == 1
    with pytest.raises(Unreachable, match="nobody answers"):
        await unless_stopped(asyncio.Event(), fail())
