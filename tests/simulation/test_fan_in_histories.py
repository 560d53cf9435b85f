"""Whatever befalls two links that write one copy: the invariants hold, and a group that both sync is at its place."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from appliance.engine.write.lane import Lane
from appliance.groups.group_places import GroupPlaces
from appliance.groups.model.group_plan import PartitionPlan
from appliance.link.model.mirror_records import MirrorCheckpoint
from tests.simulation.fan_in_history import first_failure

_HISTORIES = 20
_WITHIN = 300
"""The rarest mutation shows itself in one of some twenty."""


def test_the_invariants_hold_in_every_history_of_two_links_of_one_copy() -> None:
    failed = first_failure(0, _HISTORIES)
    assert failed is None, f"python -m tests.simulation.fan_in_history {failed.seed} 1: {failed.failure}"


def other_links_overlooked(patch: pytest.MonkeyPatch) -> None:
    """The highest place counts: each link commits its own (invariant O)."""
    patch.setattr(PartitionPlan, "held", property(lambda _: None))


def lane_without_a_name(patch: pytest.MonkeyPatch) -> None:
    """A lane of a shared copy leaves no name (invariant I)."""

    async def nothing(*_: object) -> None:
        return None

    patch.setattr(Lane, "producer_name", nothing)


def commits_not_remembered(patch: pytest.MonkeyPatch) -> None:
    """Each sync is killed between a commit and what it remembers of it: nobody knows whose it was (invariant O)."""
    remember = GroupPlaces.remember

    async def without_commits(self: GroupPlaces, places: Iterable[MirrorCheckpoint]) -> None:
        await remember(self, [replace(place, metadata="") for place in places])

    patch.setattr(GroupPlaces, "remember", without_commits)


@pytest.mark.parametrize(
    ("mutation", "said"),
    [
        (other_links_overlooked, "which it has not read"),
        (lane_without_a_name, "has left no name"),
        (commits_not_remembered, "which it has not read"),
    ],
)
def test_a_link_of_a_shared_copy_made_wrong_is_caught(
    mutation: Callable[[pytest.MonkeyPatch], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    failed = first_failure(0, _WITHIN)
    assert failed is not None
    assert said in failed.failure
