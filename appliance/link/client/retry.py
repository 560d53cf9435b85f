"""Patience with a coordinator that has something else to finish first."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from appliance.errors import BrokerBusy

Answer = TypeVar("Answer")

_PATIENCE = 30.0
_PAUSE = 0.003
_PAUSE_MAX = 0.025
_GROWTH = 1.25
"""Growth of the pause: a coordinator is free for at most a fifth longer than it is waited for."""


async def retry_while_busy(ask: Callable[[], Awaitable[Answer]], passing: Collection[str]) -> Answer:
    """Ask until the answer is none of the ``passing`` error codes: a coordinator has something else to finish first.

    Raises:
        BrokerBusy: it is busy otherwise, or for half a minute.
    """
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    pause = _PAUSE
    while True:
        try:
            return await ask()
        except BrokerBusy as error:
            if error.code not in passing or asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(pause)
        pause = min(_GROWTH * pause, _PAUSE_MAX)
