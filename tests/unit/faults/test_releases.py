"""Each fault that CI leaves out for a submission has an equivalent that it runs."""

from pathlib import Path

import pytest

from tests.faults.nemesis import FAULTS
from tests.faults.releases import HELD_BY

CHECKOUT = Path(__file__).parents[3]


@pytest.mark.parametrize("fault", HELD_BY)
def test_a_fault_tried_for_a_release_alone_has_an_equivalent_for_each_submission(fault: str) -> None:
    assert fault in FAULTS
    holder = HELD_BY[fault]
    assert holder in FAULTS.keys() - HELD_BY.keys() or (CHECKOUT / holder).is_file()
