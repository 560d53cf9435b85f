"""The arguments of bin/test, and their steps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.__main__ import CHECKOUT, CHECKS, help_text, steps
from tests.ci import (
    COLLECTION,
    TRIED_AGAIN_MAX,
    Outcome,
    Step,
    everything,
    outcomes_of,
    perform,
    tried_again,
)
from tests.suites import DEFAULT, EACH_SUBMISSION, PARTS, PROCESSORS, SIX_FILES_AT_ONCE, SUITES

MEETING = """
import os, signal, sys
signal.alarm(120)
print("{mode} before", flush=True)
with open("{pipe}", "{mode}"):
    print("{mode} met", file=sys.stderr)
os._exit(7)
"""
"""Wait until another program has opened the other end of a named pipe."""

OF_EACH_SUBMISSION = (*SIX_FILES_AT_ONCE, *EACH_SUBMISSION)
SUITE_FILES = {path.parent for path in (CHECKOUT / "tests").rglob("test_*.py")}


def test_without_arguments_style_and_types_come_before_the_tests_of_units_and_on_real_sockets() -> None:
    assert steps([], CHECKOUT) == [*CHECKS, ["pytest", *OF_EACH_SUBMISSION, "tests/real", "tests/unit"]]


def test_for_a_release_nothing_is_left_out() -> None:
    *_, last = steps(["--release", "-x"], CHECKOUT)
    assert last == ["pytest", *SIX_FILES_AT_ONCE, "-x", "tests/real", "tests/unit"]


def test_options_of_pytest_are_passed_on() -> None:
    *_, last = steps(["-x", "--stalls", "7"], CHECKOUT)
    assert last == ["pytest", *OF_EACH_SUBMISSION, "-x", "--stalls", "7", "tests/real", "tests/unit"]


def test_suites_are_run_alone_one_after_the_other_with_their_options() -> None:
    assert steps(["--faults", "--seed", "3"], CHECKOUT) == [["pytest", "--seed", "3", "tests/faults"]]
    assert [step[-1] for step in steps(["--brokers", "--outages"], CHECKOUT)] == ["tests/outages", "tests/brokers"]


@pytest.mark.parametrize("here", [CHECKOUT, CHECKOUT / "tests", CHECKOUT / "tests" / "unit"])
def test_a_file_is_run_alone_wherever_it_lies_and_wherever_one_stands(here: Path) -> None:
    file = Path(__file__)
    (step,) = steps([f"{file.relative_to(here)}::test_it", "-x"], here)
    assert step == ["pytest", "-x", f"{file}::test_it"]
    outside = CHECKOUT / "tests" / "faults" / "test_soak.py"
    assert steps([str(outside)], here) == [["pytest", str(outside)]]


def test_a_choice_by_name_alone_is_looked_for_in_all_suites_that_need_no_more_programs() -> None:
    (step,) = steps(["-k", "unit"], CHECKOUT / "tests")
    assert step[:3] == ["pytest", "-k", "unit"]
    assert {"tests/unit", "tests/spark", "tests/faults"} <= set(step)
    assert not {"tests/console", "tests/networks", "tests/containers"} & set(step)


def test_a_choice_by_name_in_a_suite_is_looked_for_there() -> None:
    (step,) = steps(["--brokers", "-k", "policy"], CHECKOUT)
    assert step == ["pytest", "-k", "policy", "tests/brokers"]


def test_every_test_belongs_to_one_suite() -> None:
    roots = [CHECKOUT / directory for suite in (DEFAULT, *SUITES) for directory in suite.directories]
    assert {path: sum(path.is_relative_to(root) for root in roots) for path in SUITE_FILES} == dict.fromkeys(
        SUITE_FILES, 1
    )


def test_the_help_lists_every_suite_with_its_minutes() -> None:
    for suite in SUITES:
        said = f"{suite.minutes} min", f"{suite.ci_minutes} in CI"
        assert any(suite.flag in line and all(map(line.__contains__, said)) for line in help_text().splitlines())


def test_tests_with_real_processes_are_tried_again_and_computed_ones_are_not() -> None:
    real, computed = "tests/spark/test_cluster.py::test_one", "tests/unit/test_suites.py::test_one"
    assert tried_again([real]) == (real,)
    assert tried_again([real, computed]) == ()
    assert tried_again(["tests/simulation/test_histories.py::test_one"]) == ()
    assert tried_again([real] * (TRIED_AGAIN_MAX + 1)) == ()


CI_SUITES = PARTS | {suite.flag: suite for suite in SUITES}


def test_the_whole_begins_with_the_checks_and_then_with_the_longest_suites(tmp_path: Path) -> None:
    first, *found = everything(tmp_path, release=True)
    checks, suites = found[: len(CHECKS)], [step for step in found[len(CHECKS) :] if step.failures]
    assert [step.module for step in (first, *checks)] == [COLLECTION, *CHECKS]
    taken = [CI_SUITES[step.name].minutes for step in suites]
    assert len(taken) == len(CI_SUITES)
    assert taken == sorted(taken, reverse=True)
    assert len({step.failures for step in suites}) == len(taken)


def test_the_parts_of_the_default_suite_are_its_directories() -> None:
    assert [path for suite in PARTS.values() for path in suite.directories] == list(DEFAULT.directories)


def test_steps_run_beside_each_other_as_long_as_the_processors_suffice() -> None:
    half, most = Step("half", [], busy=PROCESSORS / 2), Step("most", [], busy=PROCESSORS * 0.7)
    assert half.fits([])
    assert half.fits([half])
    assert not half.fits([most])
    assert not most.fits([half])


def test_a_step_that_only_computes_yields_to_every_other_and_runs_beside_no_other_such(tmp_path: Path) -> None:
    filling = [step for step in everything(tmp_path, release=False) if step.fills]
    computing = {"tests/unit", "--simulation", "testbed.kubernetes"}
    assert {" ".join(check) for check in CHECKS} | computing == {step.name for step in filling}
    assert {tuple(step.command[:3]) for step in filling} == {("nice", "-n", "19")}
    whole, first, *_ = Step("whole", []), *filling
    assert first.fits([whole])
    assert whole.fits([first])
    assert not first.fits([first])


def test_a_suite_begins_when_the_programs_that_it_needs_are_built() -> None:
    built, suite = Step("build", ["timeit", "-n1", "-r1", "pass"], fills=True), Step("suite", ["this"], after="build")
    assert [outcome.name for outcome in outcomes_of([suite, built])] == ["build", "suite"]


def test_the_faults_run_beside_no_suite_but_one_that_fills(tmp_path: Path) -> None:
    # On two cores their lanes would exceed the transaction timeout of five seconds, and start again with more to copy.
    (faults,) = (step for step in everything(tmp_path, release=False) if step.name == "--faults")
    assert faults.busy == PROCESSORS


def test_tests_for_a_release_alone_are_left_out_for_each_submission(tmp_path: Path) -> None:
    whole, each = ({step.name: step.module for step in everything(tmp_path, release)} for release in (True, False))
    assert {name for name, suite in CI_SUITES.items() if suite.ci_minutes} == each.keys() & CI_SUITES.keys()
    for name in each.keys() & CI_SUITES.keys():
        assert [part for part in each[name] if part not in EACH_SUBMISSION] == list(whole[name])
        assert set(EACH_SUBMISSION) <= set(each[name])


def test_steps_can_run_two_at_a_time_and_what_each_prints_stays_together(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    meeting = {mode: ["timeit", "-n1", "-r1", MEETING.format(pipe=pipe, mode=mode)] for mode in "rw"}
    outcomes = list(outcomes_of([Step(mode, module, busy=1.0) for mode, module in meeting.items()]))
    assert {outcome.name: outcome.printed for outcome in outcomes} == {
        mode: f"{mode} before\n{mode} met\n" for mode in meeting
    }
    assert [outcome.code for outcome in outcomes] == [7, 7]


def test_the_summary_says_of_each_suite_how_it_ended_and_after_how_long() -> None:
    line = Outcome("--spark", 9.54, 12.3, code=1).line
    assert line.split() == ["--spark", "9.5", "min", "12.3", "of", "processor", "FAILED"]
    assert Outcome("--spark", 9.54, 12.3, code=0).line.endswith(" passed")


def test_the_processor_minutes_of_a_step_are_those_of_its_processes_too() -> None:
    busy = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))'])"
    outcome = perform(Step("busy", ["timeit", "-n1", "-r1", busy]))
    assert outcome.code == 0
    assert outcome.processor_minutes > 0.05 / 60


def test_every_step_keeps_its_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert perform(Step("kept", ["timeit", "-n1", "-r1", "import sys; assert not sys.dont_write_bytecode"])).code == 0


@pytest.mark.release  # .ci/run collects them all
def test_every_suite_can_be_collected() -> None:
    # A suite that needs more programs refuses in its conftest to run without them; its imports are checked anyway.
    directories = [directory for suite in (DEFAULT, *SUITES) for directory in suite.directories]
    command = [sys.executable, "-m", "pytest", "--collect-only", "--noconftest", *directories]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    collected = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    assert collected.returncode == 0, collected.stdout + collected.stderr
