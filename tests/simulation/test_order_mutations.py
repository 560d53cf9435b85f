"""The simulation of a total order can fail: an engine made wrong in one way is caught, by a named invariant."""

import pytest

from tests.simulation import order_history
from tests.simulation.order_history import first_failure
from tests.simulation.order_mutations import ORDER_MUTATIONS

_WITHIN = 400
"""The rarest mutations show themselves in one of some ten."""

_FIRST = {"a catch-up that acknowledges for before": 16}
"""The first history to play, where many before it would show nothing."""

_PATIENCE = 60.0
"""Seconds within which all must meet: an engine made wrong that stands still is not waited for."""


@pytest.mark.parametrize(
    ("mutation", "clusters", "faults", "letters"),
    [
        ("a voter read before it promises", 3, "usurpers,moves", "SA"),
        ("a gate without an epoch", 3, "usurpers,duels,moves,deaths", "S"),
        ("a vector of an older rank", 3, "usurpers,moves", "D"),
        ("an epoch accepted without what it took over", 3, "usurpers,moves", "S"),
        ("a home without a gate", 3, "", "S"),
        ("a home that its promise does not fence", 3, "usurpers,moves", "B"),
        ("a follower that does not wait for the commit", 3, "kills,traps,requests", "PRS"),
        ("a hidden log that is not read", 3, "usurpers", "S"),
        ("the longest log wins", 3, "usurpers", "SR"),
        ("a home that shows at once what it takes over", 3, "usurpers,moves", "S"),
        ("a catch-up without its promise", 3, "usurpers,moves", "SR"),
        ("a catch-up that acknowledges for before", 4, "usurpers,cuts,moves", "S"),
        pytest.param("a majority of five", 5, "usurpers,kills", "SR", marks=pytest.mark.release),  # up to minutes
        ("a part in the order that is committed later", 3, "", "A"),
        ("marks known by their content", 3, "", "R"),
    ],
)
def test_an_order_made_wrong_is_caught(
    mutation: str, clusters: int, faults: str, letters: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_history, "_CAUGHT_UP_IN", _PATIENCE)
    ORDER_MUTATIONS[mutation](monkeypatch)
    failed = first_failure(_FIRST.get(mutation, 0), _WITHIN, tuple(filter(None, faults.split(","))), clusters)
    assert failed is not None
    assert failed.failure.startswith(tuple(f"Violation: {letter}: " for letter in {*letters, "R"}))
