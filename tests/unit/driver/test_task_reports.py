"""The driver's side of the tasks' reports."""

import pytest

from appliance.driver.task_reports import Ending, TaskReports
from appliance.engine.control.assignment import CopySums, Notice
from appliance.engine.model.chunk import Ledger
from appliance.engine.problem_log import ProblemLog
from appliance.errors import ApplianceError, Fenced
from tests.support.clock import Clock
from tests.unit.driver.parts import lines


def made(clock: Clock | None = None) -> TaskReports:
    return TaskReports(ProblemLog(), Ending("replicator-orange"), clock or Clock())


def test_case_52_the_problems_of_a_task_that_was_replaced_are_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    # Before, their end was not logged, and the same problems of the task in its place were not logged either.
    reports = made()
    reports.new_job(2)
    reports.begun(0)
    reports.begun(1)
    for _ in range(2):
        reports.heard(0, Notice("lane 0", "no leader", "BrokerBusy"))
    reports.heard(1, Notice("lane 1", "no answer", "Unreachable"))
    assert lines(caplog) == ["no leader", "no answer"]
    reports.begun(0)
    reports.heard(0, Notice("lane 0", "no leader", "BrokerBusy"))
    reports.heard(1, Notice("lane 1", "no answer", "Unreachable"))
    assert lines(caplog) == ["no leader", "no answer", "no leader"]


def test_a_tasks_copied_records_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    made().heard(0, CopySums(10, 900, 1, 2, 1))
    (record,) = caplog.records
    assert record.getMessage() == "copied"
    assert record.__dict__["fields"] == {
        "task": 0,
        "records": 10,
        "bytes": 900,
        "partitions": 1,
        "raw_batches": 2,
        "rebuilt_batches": 1,
        "filtered": 0,
    }


def test_a_lane_that_another_replicator_has_taken_ends_the_driver() -> None:
    ending = Ending("replicator-orange")
    TaskReports(ProblemLog(), ending).heard(0, Notice("lane 0", "lane 0 by another run", "Fenced"))
    assert ending.begun.is_set()
    assert type(ending.error) is Fenced
    text = "another replicator-orange has taken lane 0 by another run: this one stops, a link has one"
    assert str(ending.error) == text
    ending.end(ApplianceError("a later reason"))
    assert str(ending.error) == text


def test_a_lane_of_another_layout_has_the_driver_read_the_link_again() -> None:
    ending = Ending("replicator-orange")
    reports = TaskReports(ProblemLog(), ending)
    reports.heard(0, Notice("lane 0", "lane 0: the lanes were changed", "LayoutChanged"))
    assert reports.layout_changed.is_set()
    assert not ending.begun.is_set()


def test_a_job_that_failed_is_over_with_when_every_task_of_the_next_has_begun(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    problems = ProblemLog()
    reports = TaskReports(problems, Ending("replicator-orange"))
    problems.tell("spark", ApplianceError("a Spark job failed: why"))
    reports.new_job(2)
    reports.begun(0)
    reports.begun(0)
    assert lines(caplog) == ["a Spark job failed: why"]
    reports.begun(1)
    assert lines(caplog) == ["a Spark job failed: why", "well again"]


def test_case_53_a_task_that_hangs_or_never_begins_is_silent_after_a_minute() -> None:
    # Before, its job ran for ever, and its lanes were silently not copied.
    clock = Clock()
    reports = made(clock)
    reports.new_job(3)
    reports.begun(0)
    reports.begun(1)
    clock.now = 50.0
    reports.heard(0, CopySums.of(Ledger()))
    assert reports.silent() == []
    clock.now = 70.0
    assert reports.silent() == [1, 2]
    reports.new_job(1)
    assert reports.silent() == []


def test_case_54_a_problem_of_two_tasks_is_over_when_neither_has_it(caplog: pytest.LogCaptureFixture) -> None:
    # Before, it was logged as over when the first task had recovered, and never again logged.
    caplog.set_level("INFO")
    reports = made()
    for task in range(3):
        reports.heard(task, Notice("source broker 1", "no answer", "Unreachable"))
    reports.heard(0, Notice("source broker 1", "", ""))
    reports.begun(1)
    assert lines(caplog) == ["no answer"]
    reports.heard(2, Notice("source broker 1", "", ""))
    assert lines(caplog) == ["no answer", "well again"]


def test_a_task_that_has_copied_nothing_says_that_it_lives_and_the_log_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    made().heard(0, CopySums.of(Ledger()))
    assert lines(caplog) == []
