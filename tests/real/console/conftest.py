from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Takes the program that runs in place of ``bin/appliance``."""
    (tmp_path / "appliance").mkdir()
    # As bin/test starts it, Python looks here alone for the folder.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    return (tmp_path / "appliance" / "cli.py").write_text
