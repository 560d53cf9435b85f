import asyncio
from pathlib import Path
from typing import Any

import pytest

from appliance.errors import ApplianceError
from appliance.verify import command


async def test_a_verification_that_is_stopped_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = asyncio.Event()
    settings: Any = None
    wishes = command.Wishes((), as_json=False, wait=0.0, spark="no", resume=None, env_file=Path("setenv.sh"))

    async def verify(*_: object) -> None:
        stopping.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(command, "_verify", verify)
    with pytest.raises(ApplianceError, match="stopped before the end: nothing is verified"):
        await command.run_verify(settings, wishes, stopping)
