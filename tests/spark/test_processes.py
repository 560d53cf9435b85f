"""The replicator's processes and files do not outlive it, however it ends."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psutil
import pytest

from bench.lib import clusters
from bench.lib.copying import Copying
from bench.lib.filling import Load
from bench.lib.our_replicator import our_replicator
from testbed.process import OwnedProcess
from tests.support.engine import Pair
from tests.support.patience import PATIENCE
from tests.support.processes import runs
from tests.support.records import produce
from tests.support.rows import until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOON = 30.0
"""Seconds, after which a process hangs; a starting process notices the end once it has started."""
JAVA = "org.apache.spark.deploy.SparkSubmit"
DAEMON = "appliance.driver.daemon"
Start = Callable[[], AbstractAsyncContextManager[Copying]]


@pytest.fixture
def topic(pair: Pair) -> str:
    """A topic at the source, with one record."""
    topic = pair.topic("killed")
    produce(pair.producer(), topic, 1)
    return topic


@pytest.fixture
def start(pair: Pair, topic: str, tmp_path: Path) -> Start:
    """A function that starts the replicator of a new link, with its temporary files in ``tmp_path``."""
    both = clusters.Pair(pair.orange, pair.grape, tmp_path)
    return lambda: our_replicator(both, Load(0, topic), pair.tag)


def temporary(directory: Path) -> list[Path]:
    """The files, without the settings and the log."""
    return [path for path in directory.iterdir() if path.suffix not in (".sh", ".log")]


async def family(replicator: OwnedProcess, wanted: str) -> list[psutil.Process]:
    """The descendants of the process, once one of them runs ``wanted``."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = psutil.Process(replicator.pid).children(recursive=True)
            if any(runs(process, wanted) for process in found):
                return found
            await asyncio.sleep(0.02)


async def copied(pair: Pair, copying: Copying, count: int) -> None:
    await until_rows(pair.grape, copying.topic, count)


async def gone(processes: list[psutil.Process]) -> bool:
    """True if all processes end soon."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, timeout=SOON)
    return not alive


@pytest.mark.parametrize("moment", [JAVA, pytest.param(DAEMON, marks=pytest.mark.release)])  # held by the kill below
async def test_processes_that_are_just_starting_end_with_a_killed_replicator(start: Start, moment: str) -> None:
    async with start() as copying:
        started = await family(copying.process, moment)
        psutil.Process(copying.process.pid).kill()
        assert await gone(started)


async def test_case_63_a_replicator_that_is_told_to_stop_while_spark_starts_ends_java_and_itself(start: Start) -> None:
    async with start() as copying:
        started = await family(copying.process, JAVA)
        psutil.Process(copying.process.pid).send_signal(signal.SIGTERM)
        assert await copying.process.wait(PATIENCE) == 0
        assert await gone(started)


async def test_java_and_python_workers_die_with_a_killed_replicator_and_the_next_one_removes_its_files(
    pair: Pair, start: Start, tmp_path: Path
) -> None:
    async with start() as copying:
        await copied(pair, copying, 1)
        started = await family(copying.process, DAEMON)
        psutil.Process(copying.process.pid).kill()
        assert await gone(started)
    (left,) = temporary(tmp_path)
    (left / "of the killed one").touch()
    async with start() as copying:
        await family(copying.process, JAVA)
        (made,) = temporary(tmp_path)
        assert not (made / "of the killed one").exists()


async def test_python_workers_die_with_their_daemon_others_take_over_and_a_terminated_replicator_leaves_no_file(
    pair: Pair, topic: str, start: Start, tmp_path: Path
) -> None:
    async with start() as copying:
        await copied(pair, copying, 1)
        (daemon,) = (p for p in await family(copying.process, DAEMON) if runs(p, DAEMON) and p.children())
        workers = daemon.children()
        daemon.kill()
        assert await gone(workers)
        produce(pair.producer(), topic, 1)
        await copied(pair, copying, 2)
        assert len(temporary(tmp_path)) == 1
        psutil.Process(copying.process.pid).send_signal(signal.SIGTERM)
        assert await copying.process.wait(PATIENCE) == 0
        assert temporary(tmp_path) == []


@pytest.mark.release  # slow: many failures of one task
async def test_case_51_a_task_that_fails_again_and_again_over_weeks_ends_no_copying(
    pair: Pair, topic: str, start: Start
) -> None:
    # Spark ends a job when one of its tasks has failed four times, within any period.
    async with start() as copying:
        for count in range(1, 7):
            await copied(pair, copying, count)
            (daemon,) = (p for p in await family(copying.process, DAEMON) if runs(p, DAEMON) and p.children())
            for worker in daemon.children():
                worker.kill()
            produce(pair.producer(), topic, 1)
        await copied(pair, copying, 7)
        assert "a Spark job failed" in copying.process.log_file.read_text()


async def test_a_replicator_whose_jvm_has_died_ends_and_says_so(pair: Pair, start: Start, tmp_path: Path) -> None:
    async with start() as copying:
        await copied(pair, copying, 1)
        (java,) = (process for process in await family(copying.process, JAVA) if runs(process, JAVA))
        java.kill()
        assert await copying.process.wait(PATIENCE) == 1
        assert "SPARK_DRIVER_MEMORY" in copying.process.log_file.read_text().splitlines()[-1]
        assert temporary(tmp_path) == []


@pytest.mark.release  # held by tests/unit/driver/test_jobs.py
async def test_a_replicator_whose_jvm_hangs_ends_and_says_so(pair: Pair, start: Start) -> None:
    async with start() as copying:
        await copied(pair, copying, 1)
        (java,) = (process for process in await family(copying.process, JAVA) if runs(process, JAVA))
        java.suspend()
        psutil.Process(copying.process.pid).send_signal(signal.SIGTERM)
        assert await copying.process.wait(PATIENCE) == 1
        told = copying.process.log_file.read_text()
        assert "appliance replicate: Spark hangs" in told
        assert "never retrieved" not in told
