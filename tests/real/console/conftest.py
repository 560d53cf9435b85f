from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Takes the program that runs in place of ``bin/appliance``."""
    (tmp_path / "appliance").mkdir()
    monkeypatch.chdir(tmp_path)
    return (tmp_path / "appliance" / "cli.py").write_text
