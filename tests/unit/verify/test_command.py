import asyncio

import pytest

from appliance.errors import ApplianceError, Unreachable
from appliance.verify.command import unless_stopped
from appliance.verify.model.report import VerificationReport

REPORT = VerificationReport("orange", "grape", "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z", ())


async def test_a_verification_that_is_stopped_proves_nothing_and_leaves_nothing_running() -> None:
    stopping, ended = asyncio.Event(), asyncio.Event()

    async def verify_for_ever() -> VerificationReport:
        stopping.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return REPORT

    with pytest.raises(ApplianceError, match="stopped before the end"):
        await unless_stopped(stopping, verify_for_ever())
    assert ended.is_set()


async def test_what_comes_to_its_end_is_given_or_raised() -> None:
    async def verify() -> VerificationReport:
        return REPORT

    async def fail() -> VerificationReport:
        raise Unreachable("nobody answers")

    assert await unless_stopped(asyncio.Event(), verify()) is REPORT
    with pytest.raises(Unreachable, match="nobody answers"):
        await unless_stopped(asyncio.Event(), fail())
