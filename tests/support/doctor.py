"""Diagnoses, and their facts for tests."""

from collections.abc import Mapping
from pathlib import Path

from appliance.doctor.command import examine
from appliance.doctor.diagnosis import Diagnosis
from appliance.doctor.step import Finding, Verdict
from appliance.settings.values import Side
from appliance.tunnel.model.connect import Timeouts
from tests.support.settings import write_settings


async def diagnosis(
    directory: Path, variables: Mapping[str, str], side: Side = Side.DESTINATION, timeouts: Timeouts | None = None
) -> Diagnosis:
    """The doctor's findings on one VM."""
    return await examine(side, write_settings(directory / "setenv.sh", variables), {}, timeouts)


def finding(report: Diagnosis, step: str) -> Finding:
    """The result of one step."""
    (found,) = (result.finding for result in report.results if result.name == step)
    return found


def with_verdict(report: Diagnosis, *verdicts: Verdict) -> list[str]:
    """The names of the steps with one of these results."""
    return [result.name for result in report.results if result.finding.verdict in verdicts]


def assert_breaks_at(report: Diagnosis, step: str, seen: str, change: str) -> None:
    """Require that only this step has failed, after the steps before it, and that its text has cause and remedy."""
    failures = {result.name: result.finding for result in report.results if result.finding.verdict is Verdict.FAILED}
    assert list(failures) == [step], failures
    found = finding(report, step)
    assert seen in found.detail
    assert change in found.remedy
    names = [result.name for result in report.results]
    before = names[: names.index(step)]
    assert not set(before) & set(with_verdict(report, Verdict.NOT_REACHED))
    assert not report.well
