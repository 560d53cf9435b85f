"""A verification by Spark that is ended before its end, with a substitute for Spark."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.errors import ProcessFailed
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.verify import spark as verify_spark
from tests.support.patience import PATIENCE
from tests.support.settings import REQUIRED
from tests.unit.verify.test_work import job_of

_LONG = 2.0


class Spark:
    """Spark with one task, and the JVM that it ends with: a job lasts for long, or until the JVM is killed."""

    def __init__(self, starts_in: float = 0.0) -> None:
        self.starts_in = starts_in
        self.begun, self.killed = threading.Event(), threading.Event()
        self.ended_by_kill = False

    async def gateway(self) -> tuple[int, str]:
        await asyncio.sleep(self.starts_in)
        return 0, ""

    def room(self) -> int:
        return 1

    def call(self, *_: object) -> Any:
        self.begun.set()
        self.ended_by_kill = self.killed.wait(_LONG)
        raise ProcessFailed("Spark has ended")

    def let_go(self) -> None:
        """Nothing is reported of a substitute."""

    def kill(self) -> None:
        self.killed.set()


def substitute(monkeypatch: pytest.MonkeyPatch, spark: Spark) -> None:
    """Verify by this one."""

    @contextlib.asynccontextmanager
    async def jvm(*_: object, **__: object) -> AsyncIterator[Spark]:
        yield spark

    monkeypatch.setattr(verify_spark, "spark_jvm", jvm)
    monkeypatch.setattr(verify_spark, "Spark", lambda *_, **__: spark)


async def verify() -> None:
    settings, env_file = parse(REQUIRED, Role.REPLICATOR), Path("setenv.sh")
    async with verify_spark.spark_verification(settings, env_file, {}, offsets=0, shared=True) as verification:
        await verification.check([job_of(9, 9)], 0.0, lambda *_: [])


async def test_case_477_a_verification_that_is_stopped_does_not_wait_for_the_jobs_of_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, its threads were waited for first: a stop took as long as the longest job, and nothing else ran meanwhile.
    spark = Spark()
    substitute(monkeypatch, spark)
    verifying = asyncio.create_task(verify())
    assert await asyncio.to_thread(spark.begun.wait, PATIENCE)
    verifying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await verifying
    assert spark.ended_by_kill


async def test_case_478_a_spark_that_does_not_start_is_a_reason_to_verify_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Before, the command ended with a traceback.
    substitute(monkeypatch, Spark(PATIENCE))
    monkeypatch.setattr(verify_spark, "_START_SECONDS", 0.01)
    with pytest.raises(ProcessFailed, match=r"SPARK_MASTER=local\[\*\]: Spark has not started within 0.01 s"):
        await verify()
