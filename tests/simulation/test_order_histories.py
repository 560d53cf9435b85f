"""Whatever befalls clusters with one order: P, Q, R, S and the engine's invariants hold, and all meet in the end."""

import pytest

from tests.simulation.order_history import first_failure

_HISTORIES = 3_000
_AT_ONCE = 50
_EACH_SUBMISSION = 100
"""Each of 50 takes half a minute; a release plays the others, too."""


@pytest.mark.parametrize(
    "first",
    [
        *range(0, _EACH_SUBMISSION, _AT_ONCE),
        *(pytest.param(first, marks=pytest.mark.release) for first in range(_EACH_SUBMISSION, _HISTORIES, _AT_ONCE)),
    ],
)
def test_the_invariants_hold_in_every_history_of_clusters_with_one_order(first: int) -> None:
    failed = first_failure(first, _AT_ONCE)
    assert failed is None, f"python -m tests.simulation.order_history {failed.seed} 1: {failed.failure}"
