"""The jobs that run the SQL, by Spark itself: an outcome has an end mark, whatever fails on the way."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
import pytest_asyncio
from pyspark import SparkContext

from appliance.settings.secret import Secret
from appliance.sql.flight.ends import sink, source
from appliance.sql.jobs.job_ends import Attempt, connected
from tests.support.patience import PATIENCE
from tests.support.sql import RunningSql, range_of, running_sql, values_of

on_one_loop = pytest.mark.asyncio(loop_scope="module")

DOUBLED = """
SELECT key, CAST(2 * CAST(CAST(value AS STRING) AS INT) AS STRING) AS value, headers
FROM records WHERE CAST(CAST(value AS STRING) AS INT) <> 7
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sql(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningSql]:
    # test_transform.py takes the other way.
    async with running_sql(tmp_path_factory.mktemp("sql"), DOUBLED, between_hosts=True) as made:
        yield made


def numbers(first: int, last: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, last)]


def doubled(first: int, last: int) -> list[bytes | None]:
    return [b"%d" % (2 * number) for number in range(first, last) if number != 7]


@on_one_loop
async def test_ranges_come_back_in_order_without_what_the_sql_leaves_out(sql: RunningSql) -> None:
    ranges = [range_of(numbers(0, 25_000), partition=0), range_of(numbers(5, 9), partition=1)]
    large, small = await sql.service.transform(ranges)
    assert values_of(large) == doubled(0, 25_000)
    assert (large.next_offset, large.filtered, large.stop) == (25_000, 1, None)
    assert (values_of(small), small.next_offset, small.filtered) == (doubled(5, 9), 4, 1)


@on_one_loop
async def test_what_spark_ends_early_is_never_taken_for_all_of_it(sql: RunningSql) -> None:
    # The source fails at its last batch: the sink has seen all rows before it, and a clean end.
    whole = range_of(numbers(0, 25_000))
    first, last = whole.batches
    data = bytearray(last.data)
    data[-1] ^= 0xFF  # the number of headers of the last record
    broken = replace(whole, batches=(first, replace(last, data=bytes(data))))
    outcome, other = await sql.service.transform([broken, range_of(numbers(0, 20), partition=1)])
    assert outcome.stop is not None
    assert outcome.stop.damaged
    assert outcome.next_offset == outcome.stop.offset == last.first_offset
    assert values_of(outcome) == doubled(0, last.first_offset)
    assert values_of(other) == doubled(0, 20)


@on_one_loop
async def test_a_job_whose_processes_are_killed_is_run_again_and_no_record_is_blamed(sql: RunningSql) -> None:
    await sql.service.transform([range_of(numbers(0, 10))])  # from now on there are processes
    for victims in (slice(0, 1), slice(1, 2), slice(0, 2)):
        asked = asyncio.create_task(sql.service.transform([range_of(numbers(0, 60_000))]))
        await asyncio.sleep(0.1)
        killed = sql.workers()[victims]
        assert killed
        for worker in killed:
            os.kill(worker.pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            (outcome,) = await asked
        assert outcome.stop is None
        assert values_of(outcome) == doubled(0, 60_000)


@on_one_loop
async def test_a_job_that_spark_ends_in_the_middle_is_run_again(sql: RunningSql) -> None:
    before = sql.jobs
    asked = asyncio.create_task(sql.service.transform([range_of(numbers(0, 60_000)), range_of(numbers(0, 10))]))
    await asyncio.sleep(0.1)
    await asyncio.to_thread(SparkContext._active_spark_context.cancelAllJobs)
    async with asyncio.timeout(PATIENCE):
        large, small = await asked
    assert (values_of(large), values_of(small)) == (doubled(0, 60_000), doubled(0, 10))
    assert sql.jobs > before


@on_one_loop
async def test_a_record_that_the_sql_fails_on_ends_its_range_and_no_other(sql: RunningSql) -> None:
    before, bad = sql.jobs, [*numbers(0, 700), b"none", b"7", b"neither"]
    good, failed, after = await sql.service.transform(
        [range_of(numbers(0, 3000)), range_of(bad, partition=1), range_of(numbers(0, 10), partition=2)]
    )
    assert (values_of(good), values_of(after)) == (doubled(0, 3000), doubled(0, 10))
    assert (failed.next_offset, values_of(failed), failed.filtered) == (700, doubled(0, 700), 1)
    assert failed.stop is not None
    assert failed.stop.reason.startswith("CAST_INVALID_INPUT: ")
    assert "none" not in failed.stop.reason
    assert failed.batches[-1].next_offset == 700
    assert sql.jobs <= before + 2  # one that has got them, and the next one, which waits


@on_one_loop
async def test_an_idle_link_runs_no_jobs(sql: RunningSql) -> None:
    await sql.service.transform([range_of(numbers(0, 10))])
    before = -1
    async with asyncio.timeout(PATIENCE):
        while before != sql.jobs:  # the last one ends, and the next one waits
            before = sql.jobs
            await asyncio.sleep(1)
    await asyncio.sleep(2)
    assert sql.jobs == before


@on_one_loop
async def test_a_request_that_is_given_up_disturbs_no_later_one(sql: RunningSql) -> None:
    asked = asyncio.create_task(sql.service.transform([range_of(numbers(0, 50_000))]))
    await asyncio.sleep(0.05)
    asked.cancel()
    (outcome,) = await sql.service.transform([range_of(numbers(0, 10))])
    assert values_of(outcome) == doubled(0, 10)


def test_arrow_is_not_loaded_before_spark_forks_its_workers() -> None:
    code = "import sys, appliance.driver.daemon; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0


@on_one_loop
async def test_each_end_has_processes_of_its_own_which_stay_from_job_to_job(sql: RunningSql) -> None:
    ends = []
    for _ in range(2):
        await sql.service.transform([range_of(numbers(0, 10))])
        ends.append({(end, worker.pid) for end, workers in sql.ends().items() for worker in workers})
    assert {end for end, _ in ends[0]} == {"source", "sink"}
    assert ends[0] == ends[1]


@on_one_loop
async def test_no_event_log_shows_the_token_by_which_jobs_reach_the_lanes(sql: RunningSql) -> None:
    await sql.service.transform([range_of(numbers(0, 10))])
    written = sql.event_log()
    assert b"MapInArrow" in written
    assert sql.token
    assert sql.token.encode() not in written


def test_case_521_a_job_whose_lanes_have_gone_before_it_begins_ends_without_a_failure(tmp_path: Path) -> None:
    # It failed four times, and each time new processes of Spark's had to load Arrow: so after each task that verified.
    left = iter([pa.RecordBatch.from_pydict({"offset": [1]})])
    gone = partial(connected, [str(tmp_path / "socket")], Attempt(0, 0, 0))
    assert [*source(gone, 0, (), Secret(""))] == []
    assert [*sink(gone, 0, left)] == []
    assert [*left] == []


def test_a_process_collects_no_garbage_among_what_arrow_has_loaded() -> None:
    code = """
import gc, sys
from appliance.sql.flight.ends import source

def gone():
    raise EOFError

for _ in range(2):
    assert not [*source(gone, 0, (), None)]
sys.exit(gc.get_freeze_count() < 100 * len(gc.get_objects()))
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0


def test_a_sink_whose_lanes_have_gone_takes_all_of_its_input() -> None:
    code = """
from appliance.sql.flight.ends import sink

def gone():
    raise EOFError

rows = iter([1, 2, 3])
assert not [*sink(gone, 0, rows)]
assert not [*rows]
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
