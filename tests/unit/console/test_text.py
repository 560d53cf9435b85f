import pytest

from appliance.console.model.text import count, milliseconds, size, span


@pytest.mark.parametrize(
    ("number", "shown"), [(None, "unknown"), (0, "0"), (0.0, "0"), (3.25, "3.2"), (1234567, "1,234,567")]
)
def test_numbers(number: float | None, shown: str) -> None:
    assert count(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [(None, "unknown"), (0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (123e6, "123 MB"), (2e15, "2.0 PB")],
)
def test_sizes(number: float | None, shown: str) -> None:
    assert size(number) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "unknown"),
        (0, "0 s"),
        (4.26, "4.3 s"),
        (75, "1 min 15 s"),
        (60, "1 min"),
        (7500, "2 h 5 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_times(seconds: float | None, shown: str) -> None:
    assert span(seconds) == shown


def test_milliseconds() -> None:
    assert [milliseconds(number) for number in (None, 12.4, 65_000)] == ["unknown", "12 ms", "1 min 5 s"]
