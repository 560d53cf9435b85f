"""The bound of a link, which is read repeatedly."""

from collections.abc import Iterator

import pytest

from appliance.errors import SettingsError
from appliance.settings.engine import Bound
from tests.support.virtual_time import run

BROKEN = SettingsError(["line 3: expected export NAME='value'"])


def read(*found: int | SettingsError) -> Bound:
    """A bound of 100, which then reads these values one after the other."""
    coming: Iterator[int | SettingsError] = iter(found)

    def following() -> int:
        one = next(coming)
        if isinstance(one, SettingsError):
            raise one
        return one

    return Bound(100, following)


@pytest.mark.parametrize(
    ("found", "held"),
    [
        ((100, 100), [100, 100]),
        ((200, 200, 200), [100, 200, 200]),
        ((0, 200, 200), [100, 100, 200]),  # read during a write
        ((200, 100, 200, 200), [100, 100, 100, 200]),
        ((200, BROKEN, 200), [100, 100, 200]),
        ((0, 0), [100, 0]),
    ],
)
def test_a_bound_that_is_read_twice_holds(found: tuple[int | SettingsError, ...], held: list[int]) -> None:
    bound = read(*found)
    seen = []
    for _ in found:
        before = bound.bytes_per_second
        assert bound.read_again() == (bound.bytes_per_second != before)
        seen.append(bound.bytes_per_second)
    assert seen == held


def test_settings_that_cannot_be_read_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    bound = read(BROKEN, BROKEN, 100, BROKEN)
    for _ in range(4):
        bound.read_again()
    assert [record.getMessage() for record in caplog.records] == [
        "the settings cannot be read again, the bound stays: line 3: expected export NAME='value'"
    ] * 2


def test_each_change_is_reported() -> None:
    told: list[int] = []
    with pytest.raises(RuntimeError, match="StopIteration"):  # there is no more to read
        run(read(200, 200, 200, 300, 300).follow(3.0, told.append))
    assert told == [200, 300]
