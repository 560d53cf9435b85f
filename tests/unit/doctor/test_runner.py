"""The steps in their order, and their dependencies."""

import asyncio

import pytest

from appliance.doctor.step import (
    SETTINGS,
    Finding,
    Result,
    Step,
    Verdict,
    blocked,
    failed,
    passed,
    run_steps,
    skipped,
    warning,
)
from appliance.errors import Unreachable

A, B, C, OTHER = "a", "b", "c", "other"


def step(name: str, after: str, finding: Finding, tried: list[str]) -> Step[None]:
    async def run(_patient: None) -> Finding:
        tried.append(name)
        return finding

    return Step(name, after, run, "change this")


def chain(finding: Finding, tried: list[str]) -> list[Step[None]]:
    return [
        step(A, SETTINGS, finding, tried),
        *(step(n, b, passed(""), tried) for n, b in ((B, A), (C, B), (OTHER, SETTINGS))),
    ]


async def test_a_step_that_depends_on_a_failed_one_is_not_tried_and_says_so_and_other_steps_go_on() -> None:
    tried: list[str] = []
    results = await run_steps(chain(failed("broken", "mend it"), tried), None)
    assert tried == [A, OTHER]
    assert [result.finding.verdict for result in results] == [
        Verdict.FAILED,
        Verdict.NOT_REACHED,
        Verdict.NOT_REACHED,
        Verdict.PASSED,
    ]
    assert [result.finding.detail for result in results[1:3]] == ["behind: a", "behind: a"]


@pytest.mark.parametrize("finding", [passed(""), warning("odd", "look"), skipped("not here")])
async def test_every_other_verdict_lets_the_next_step_be_tried(finding: Finding) -> None:
    tried: list[str] = []
    await run_steps(chain(finding, tried), None)
    assert tried == [A, B, C, OTHER]


async def test_an_error_of_ours_is_a_failure_with_the_steps_remedy() -> None:
    async def run(_patient: None) -> Finding:
        raise Unreachable("nobody there")

    (result,) = await run_steps([Step(A, SETTINGS, run, "start somebody")], None)
    assert result.finding == failed("nobody there", "start somebody")


async def test_a_step_that_never_ends_is_a_failure_after_its_time() -> None:
    async def run(_patient: None) -> Finding:
        await asyncio.Event().wait()
        return passed("")

    (result,) = await run_steps([Step(A, SETTINGS, run, "look")], None, step_seconds=0.01)
    assert result.finding == failed("no result within 0.01 s", "look")


async def test_the_time_of_each_step_is_taken() -> None:
    times = iter([10.0, 10.5, 20.0, 22.0])
    steps = [step(name, SETTINGS, passed(""), []) for name in (A, B)]
    assert [result.seconds for result in await run_steps(steps, None, lambda: next(times))] == [0.5, 2.0]


def test_without_settings_no_step_is_tried() -> None:
    tried: list[str] = []
    base = Result(SETTINGS, failed("X: missing", "correct it"))
    results = blocked(chain(passed(""), tried), base)
    assert {result.finding.detail for result in results} == {"behind: settings"}
    assert not tried
