"""The Spark jobs of a replicator, and the lanes in them, without Spark."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from appliance.driver.jobs import JobTimes
from appliance.driver.model.link_facts import Established
from appliance.engine.control.assignment import Notice
from appliance.errors import Fenced, ProcessFailed
from appliance.link.model.checkpoint import OPERATOR, Owner
from appliance.link.model.layout import Layout
from appliance.link.model.link_sql import LinkSql
from tests.support.clock import Clock
from tests.support.engine import ENGINE
from tests.support.patience import PATIENCE
from tests.unit.driver.parts import ENDPOINT, LANES, Spark, jobs, lines, replicator, run_job

OWN, BY_OPERATOR = Owner("run", "worker", "host", 0, 1), Owner(OPERATOR, "c", "host", 0, 1)


def in_another_layout(*owners: Owner) -> Established:
    copied = {("orders", number): 100 + number for number in range(LANES)}
    return Established(Layout(2, 1), 9, owners=owners, copied=copied, sql=LinkSql(3))


async def test_case_470_a_driver_takes_a_new_layout_and_stays_the_run_that_it_was_with_its_sql() -> None:
    # Before, it took the link's SQL for one that had been emptied: every task refused that, in job after job. With a
    # new number for its own, an older run would undo the change of a newer one that was killed.
    own = LinkSql(1, "SELECT * FROM records")
    begun = Established(Layout(LANES), 1, copied={("orders", 1): 101}, sql=own)
    newer, of = in_another_layout(OWN, BY_OPERATOR), jobs()
    running = replicator(of, begun, newer)
    of.reports.layout_changed.set()
    await running.lay_out("run")
    assert running.link == replace(newer, generation=1, sql=own)
    assert not of.reports.layout_changed.is_set()
    assert newer.copied_since(begun) == {("orders", 0): 100, ("orders", 1): 0, ("orders", 2): 102, ("orders", 3): 103}
    assert newer.copied_since(newer) == newer.copied


async def test_a_driver_that_wakes_up_to_another_layout_of_a_newer_run_ends() -> None:
    of = jobs()
    await replicator(of, later=in_another_layout(Owner("newer", "worker", "host", 0, 2))).lay_out("run")
    assert type(of.ending.error) is Fenced
    assert "has taken the lanes by newer on host since 1970-01-01T00:00:00.000Z: this one" in str(of.ending.error)


async def test_a_replicator_says_from_which_run_it_takes_the_lanes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    owners = Owner("old", "w", "first-vm", 5, 1), Owner("last", "w", "a", 2_000, 2), Owner("last", "w", "b", 1_000, 2)
    for link in (in_another_layout(BY_OPERATOR), in_another_layout(*owners, BY_OPERATOR)):
        of = jobs()
        of.stopping.set()
        running = replicator(of, link)
        await running.run(cast("Any", None), ENDPOINT, cast("Any", None))
    (line,) = [record for record in caplog.records if record.message.startswith("takes the lanes")]
    assert line.message == "takes the lanes from an earlier run"
    assert vars(line)["fields"] == {"run": "last", "host": "a, b", "since": "1970-01-01T00:00:01.000Z"}


async def test_cores_that_do_not_do_for_the_tasks_and_the_sql_beside_them_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("WARNING")
    engine = replace(ENGINE, spark_master="spark://10.0.0.9:7077", tasks=2)
    of = jobs(engine, slots_each=2, times=JobTimes(room=0.0, retry=0.01))
    spark: list[Any] = [Spark(number) for number in range(5)]
    assert [await of.room(spark[number]) for number in (2, 3, 4)] == [1, 1, 2]
    for number, said in ((1, "1 core"), (0, "no core")):
        with pytest.raises(ProcessFailed, match=rf"gave {said} for 0 s; with SQL in flight each task needs 2"):
            await of.room(spark[number])
    assert lines(caplog) == [
        "Spark has cores for 1 of TASKS=2: these copy every lane; with SQL in flight each task needs 2",
        "SPARK_MASTER=spark://10.0.0.9:7077 has 1 core for us; with SQL in flight each task needs 2",
        "SPARK_MASTER=spark://10.0.0.9:7077 has no core for us: is a worker up?",
    ]


async def test_case_53_the_job_of_a_silent_task_is_ended_by_force(caplog: pytest.LogCaptureFixture) -> None:
    clock, spark = Clock(), Spark()
    of = jobs(clock=clock, times=JobTimes(listening=0.0, job_end=0.0))
    job = asyncio.create_task(run_job(of, spark))
    while not of.tasks:
        await asyncio.sleep(0)
    clock.now = 61.0
    await job
    assert spark.cancelled.is_set()
    assert "nothing is heard of task 0: its job ends, and the next one begins" in lines(caplog)


async def test_sql_that_makes_no_progress_ends_the_replicator_and_its_spark(
    caplog: pytest.LogCaptureFixture,
) -> None:
    of: Any = jobs()
    job = asyncio.create_task(run_job(of, Spark(ends=of.control.stopped)))
    while not of.tasks:
        await asyncio.sleep(0)
    silent = "SQL in flight: no progress for 60 s in orders-0 offsets 5 to 9"
    of.reports.heard(0, Notice("SQL in flight", silent, "ProcessFailed"))
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ProcessFailed, match=silent):
            await job
    assert lines(caplog) == [silent]


async def test_case_64_a_stop_does_not_wait_for_a_job_that_hangs_to_be_ended_by_force() -> None:
    # Before, it took 70 seconds until Java was killed.
    of, spark = jobs(times=JobTimes(job_end=0.0)), Spark()
    of.stopping.set()
    with pytest.raises(ProcessFailed, match="Spark hangs: its job has not ended"):
        await run_job(of, spark)
    assert not spark.cancelled.is_set()
    spark.cancel()
