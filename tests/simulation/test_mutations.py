"""The simulation can fail: an engine made wrong in one way is caught, within some hundred histories."""

import pytest

from tests.faults.injection.mutations import mutated
from tests.simulation.runner import first_failure

_WITHIN = 300


@pytest.mark.parametrize(
    "mutation",
    [
        "position committed separately",  # invariant A
        "read before fencing",  # invariant C
        "an aborted batch let through",
        "a retry without a new epoch",  # invariant B
    ],
)
def test_an_engine_made_wrong_is_caught(mutation: str) -> None:
    with mutated(mutation):
        failed = first_failure(0, _WITHIN)
    assert failed is not None
    assert failed.failure.startswith("Violation")
