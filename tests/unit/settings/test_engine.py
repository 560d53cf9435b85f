"""The bound of a link, which is read repeatedly."""

from collections.abc import Iterator

import pytest

from appliance.errors import SettingsError
from appliance.settings.engine import Bound
from tests.support.virtual_time import run

BROKEN = SettingsError(["line 3: expected export NAME='value'"])


def bound_of(*values: int | SettingsError) -> Bound:
    """A bound of 100, which then reads these values one after the other."""
    unread: Iterator[int | SettingsError] = iter(values)

    def read() -> int:
        value = next(unread)
        if isinstance(value, SettingsError):
            raise value
        return value

    return Bound(100, read)


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ((100, 100), [100, 100]),
        ((200, 200, 200), [100, 200, 200]),
        ((0, 200, 200), [100, 100, 200]),  # read during a write
        ((200, 100, 200, 200), [100, 100, 100, 200]),
        ((200, BROKEN, 200), [100, 100, 200]),
        ((0, 0), [100, 0]),
    ],
)
def test_a_bound_that_is_read_twice_holds(values: tuple[int | SettingsError, ...], bounds: list[int]) -> None:
    bound = bound_of(*values)
    for expected in bounds:
        before = bound.bytes_per_second
        assert bound.read_again() == (expected != before)
        assert bound.bytes_per_second == expected


def test_settings_that_cannot_be_read_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    bound = bound_of(BROKEN, BROKEN, 100, BROKEN)
    for _ in range(4):
        bound.read_again()
    assert [record.getMessage() for record in caplog.records] == [
        "the settings cannot be read again, the bound stays: line 3: expected export NAME='value'"
    ] * 2


def test_each_change_is_reported() -> None:
    bound, changes = bound_of(200, 200, 200, 300, 300), list[int]()
    for _ in range(5):
        run(bound.follow(lambda: changes.append(bound.bytes_per_second)))
    assert changes == [200, 300]
