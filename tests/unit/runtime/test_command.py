import argparse
import math

import pytest

from appliance.runtime.command import seconds


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "soon", ""])
def test_case_480_a_wait_that_has_no_end_is_refused(text: str) -> None:
    # Before, `lanes --sample inf` slept for ever, and `verify --wait nan` compared a compacted topic for ever.
    with pytest.raises(argparse.ArgumentTypeError, match=f"^{text}: expected a number of seconds, 0 or more$"):
        seconds(text)


def test_a_number_of_seconds_is_taken() -> None:
    assert [seconds(text) for text in ("0", "2.5", "1e3")] == [0, 2.5, 1000]
    assert math.isfinite(seconds("1e300"))
