"""The findings about a clock."""

import os
import time
from pathlib import Path

import pytest

from appliance.doctor import clock
from appliance.doctor.clock import SKEW_MAX, SKEW_WARNING, examine_clock, judge_skew
from appliance.doctor.step import Verdict


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [(0.0, Verdict.PASSED), (SKEW_WARNING, Verdict.WARNING), (SKEW_MAX, Verdict.FAILED)],
)
def test_a_difference_is_judged_by_its_size_whichever_clock_is_ahead(
    sign: int, seconds: float, verdict: Verdict
) -> None:
    assert judge_skew(sign * seconds).verdict is verdict


def test_a_difference_that_cannot_be_known_is_no_fault() -> None:
    assert judge_skew(None).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("kept", "verdict"), [(True, Verdict.PASSED), (False, Verdict.WARNING), (None, Verdict.PASSED)]
)
def test_a_clock_that_nobody_keeps_deserves_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool | None, verdict: Verdict
) -> None:
    monkeypatch.setattr(clock, "synchronised", lambda: kept)
    assert examine_clock(tmp_path / "setenv.sh").verdict is verdict


def test_a_clock_before_the_settings_were_written_is_behind(tmp_path: Path) -> None:
    path = tmp_path / "setenv.sh"
    path.touch()
    os.utime(path, (time.time() + 3600,) * 2)
    found = examine_clock(path)
    assert (found.verdict, "behind" in found.remedy) == (Verdict.FAILED, True)
