"""Fixtures of failing over and back."""

import pytest

from appliance.commands.failback import failback


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failback of the tests looks often."""
    monkeypatch.setattr(failback, "_PAUSE", 0.05)
