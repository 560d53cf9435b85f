"""The rows of the backlog benchmark, from its samples."""

import pytest

from appliance.errors import ProcessFailed
from bench.cases.backlog import rows
from bench.lib.row import Row
from bench.lib.sampling import Course, Sample

SAMPLES = [Sample(at, size) for at, size in enumerate([10, 200, 210, 205, 230, 220, 215, 220, 216, 10])]


def test_memory_is_looked_at_while_records_become_visible() -> None:
    assert Course.of(SAMPLES, 1, 8) == Course(highest=230, first=205, last=218)


def test_of_three_samples_the_first_and_the_last_stand_for_the_quarters() -> None:
    assert Course.of(SAMPLES, 1, 3) == Course(highest=210, first=200, last=205)


def test_memory_stands_beside_the_limit_and_beside_itself() -> None:
    assert rows(SAMPLES, 1, 8) == [
        Row("memory of Python, highest", "MB", 230, "limit", 300),
        Row("memory of Python, last quarter", "MB", 218, "first quarter", 205, goal=1.1),
    ]


def test_a_copy_done_too_soon_says_what_to_do() -> None:
    with pytest.raises(ProcessFailed, match="take more with --gigabytes"):
        rows(SAMPLES, 1.2, 1.8)
