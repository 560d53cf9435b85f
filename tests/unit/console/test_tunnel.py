"""The documents of both ends of the tunnel, as another process of this VM tells them."""

import json
from typing import Any, cast

import pytest

from appliance.console import tunnel
from tests.support.facts import settings


@pytest.mark.parametrize("reason", ["[" * 900 + "]" * 900, '{"a": 1}', "5", "null"], ids=len)
async def test_case_1064_a_reason_that_is_no_text_is_unknown(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Before, one of almost a thousand levels was an error of the whole page.
    async def told(*_: object) -> tuple[int, bytes]:
        return 200, json.dumps({"near": {}, "far_unknown": {"since": 1, "reason": "R"}}).replace('"R"', reason).encode()

    monkeypatch.setattr(tunnel, "page_at", told)
    view = await tunnel.tunnel_view(settings(), cast("Any", None))
    assert view.document
    assert view.document["far_unknown"] == {"since": 1, "reason": "unknown"}
