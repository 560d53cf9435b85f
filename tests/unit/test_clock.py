"""The one clock, with a time of day of a test's own."""

import pytest

from appliance.clock import SOURCE, epoch_seconds, now_ms, utc_now


def test_every_reader_of_the_time_of_day_gets_what_a_test_puts_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SOURCE, "of_day", lambda: 1_700_000_000.25)
    assert (epoch_seconds(), now_ms()) == (1_700_000_000.25, 1_700_000_000_250)
    assert utc_now().isoformat() == "2023-11-14T22:13:20.250000+00:00"
