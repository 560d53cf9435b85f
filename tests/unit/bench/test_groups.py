"""The rows of the groups benchmark, and the condition that a group has followed."""

import pytest

from appliance.kafka.client.group_offsets import Commit, Commits
from bench.__main__ import main
from bench.cases.groups import _moved_on, rows
from bench.lib.footprint import Cost, Footprint
from bench.lib.row import Row


def commits(offset: int, partitions: int = 10) -> Commits:
    return {("copy", number): Commit(offset) for number in range(partitions)}


def test_delays_are_beside_their_limit_and_idle_groups_beside_a_core() -> None:
    idle = Footprint(Cost(300, 4), Cost(200, 6))
    assert rows([2.0, 4.0, 9.0], idle, 2_000) == [
        Row("2,000 groups, slowest", "s", 9.0, "limit", 10.0, 1),
        Row("2,000 groups, median", "s", 4.0, "limit", 10.0, 1),
        Row("2,000 groups, idle: processor", "%", 10, "one core", 100.0),
        Row("2,000 groups, idle: memory of Python", "MB", 200, "limit", 300.0),
    ]


def test_a_group_has_followed_when_each_of_its_partitions_is_further_than_before() -> None:
    assert _moved_on({}, commits(0))
    assert _moved_on(commits(3), commits(4))
    assert not _moved_on({}, commits(0, partitions=9))
    assert not _moved_on(commits(3), {**commits(4), ("copy", 7): Commit(3)})


@pytest.mark.parametrize("option", ["--groups", "--times"])
def test_a_number_that_is_none_is_refused(option: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["groups", option, "0"])
    assert caught.value.code == 2
