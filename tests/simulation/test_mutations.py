"""The simulation can fail: an engine made wrong in one way is caught, within some hundred histories."""

import pytest

from tests.faults.injection import mutations
from tests.simulation.command_mutations import COMMAND_MUTATIONS
from tests.simulation.mutations import MUTATIONS
from tests.simulation.runner import first_failure

_WITHIN = 2000
"""The rarest mutations show themselves in one of some hundred."""

_FIRST = {
    "a retry without a new epoch": 500,
    "a compacted epoch taken for a loss": 50,
    "a position without an epoch": 138,
    "a layout read back before its markers": 360,
}
"""The first history to play, where many before it would show nothing; others are found within some tens."""


@pytest.mark.parametrize(
    ("mutation", "faults"),
    [
        ("position committed separately", None),  # invariant A
        ("read before fencing", None),  # invariant C
        ("an aborted batch let through", None),
        ("a retry without a new epoch", ("requests",)),  # invariant B
        ("a missing position taken for the start", ("link", "positions")),  # invariant H
        ("the registry ignored", ("link", "others")),  # invariant I
        ("a loss overlooked", ("losses",)),  # invariant J
        ("a new partition begun at its end", ("link", "topics")),  # invariant K
    ],
)
def test_an_engine_made_wrong_is_caught(
    mutation: str, faults: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutations, "_LATE", 0.2)
    with mutations.mutated(mutation):
        failed = first_failure(_FIRST.get(mutation, 0), _WITHIN, faults)
    assert failed is not None
    assert failed.failure.startswith("Violation")


@pytest.mark.parametrize(
    ("mutation", "faults"),
    [
        ("an open transaction overlooked", ("link", "remade", "hanging", "crashes")),
        ("a compacted epoch taken for a loss", ("compaction", "crashes")),
        ("a commit done again where another coordinates", ("coordinators",)),
        ("an operator who decides before fencing", ("resumes",)),
        ("an operator who leaves no gap", ("resumes",)),
        ("a map that counts no aborted copies", ("crashes", "requests")),
        ("a map that is not cut where its copy was", ("losses",)),
        ("a state overlooked", ("states",)),
        ("a state written without fencing", ("states",)),
        ("a lane of another layout that goes on", ("link", "layouts", "crashes")),
        ("a layout read back before its markers", ("link", "layouts", "crashes", "requests", "rivals")),
    ],
)
def test_an_engine_made_wrong_against_what_is_played_here_alone_is_caught(
    mutation: str, faults: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTATIONS[mutation](monkeypatch)
    failed = first_failure(_FIRST.get(mutation, 0), _WITHIN, faults)
    assert failed is not None
    assert failed.failure.startswith("Violation")


@pytest.mark.parametrize(
    ("mutation", "faults", "letter"),
    [
        ("losses by ends alone", ("states", "truncations"), "N"),
        ("a copy that is not judged", ("states", "losses"), "N"),
        ("logs looked at before fencing", ("states",), "N"),
        ("a position without an epoch", ("truncations", "resumes"), "A, E, F"),
        ("a group set to the newest copy of a record", ("groups", "resumes"), "O"),
        ("a group set below its copy's start", ("groups", "retention"), "O"),
        ("a group set past what it has read", ("groups",), "O"),
        ("a group left where its source lost records", ("groups", "truncations", "resumes"), "O"),
    ],
)
def test_a_command_or_a_sync_made_wrong_is_caught(
    mutation: str, faults: tuple[str, ...], letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    COMMAND_MUTATIONS[mutation](monkeypatch)
    failed = first_failure(_FIRST.get(mutation, 0), _WITHIN, faults)
    assert failed is not None
    assert f"{letter}: " in failed.failure
