"""Long lists for people."""

import pytest

from appliance.listing import first_lines, some


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c"], "a, b and 1 more")],
)
def test_the_first_names_are_shown_and_the_others_counted(names: list[str], text: str) -> None:
    assert some(names, 2) == text


def test_the_first_lines_are_shown_and_the_others_counted() -> None:
    assert list(first_lines(range(3), "partitions", 3)) == ["0", "1", "2"]
    assert list(first_lines(range(5), "partitions", 3)) == [
        "0",
        "1",
        "2",
        "... and 2 partitions more: --json shows all",
    ]
