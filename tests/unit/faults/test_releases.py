"""Each fault that CI leaves out for a submission has an equivalent that it runs."""

from pathlib import Path

import pytest

from tests.faults.nemesis import FAULTS
from tests.faults.releases import HELD_BY

CHECKOUT = Path(__file__).parents[3]


@pytest.mark.parametrize("fault", HELD_BY)
def test_what_is_tried_for_a_release_alone_is_held_by_something_else(fault: str) -> None:
    assert fault in FAULTS
    holder = HELD_BY[fault]
    assert holder in FAULTS.keys() - HELD_BY.keys() or (CHECKOUT / holder).is_file()
