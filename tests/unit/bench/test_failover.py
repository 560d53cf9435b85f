"""The rows of the failover benchmark."""

import pytest

from bench.__main__ import main
from bench.cases.failover import rows
from bench.lib.row import Row


def test_both_commands_are_beside_their_limit() -> None:
    assert rows(12.0, 5.0, 1_000, 2_000) == [
        Row("promote, 10,000 partitions, 2,000 groups", "s", 12.0, "limit", 30.0, 1),
        Row("failover, 10,000 partitions, 2,000 groups", "s", 5.0, "limit", 30.0, 1),
    ]


@pytest.mark.parametrize("option", ["--groups", "--topics"])
def test_a_number_that_is_none_is_refused(option: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["failover", option, "0"])
    assert caught.value.code == 2
