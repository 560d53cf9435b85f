"""Retries while brokers or other links have something else to finish first."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from appliance.clock import loop_seconds
from appliance.errors import ApplianceError, BrokerBusy, Fenced

Answer = TypeVar("Answer")

_PATIENCE = 45.0
"""Longer than the 30 s that one broker gives another to answer: a coordinator's transactions may wait for that."""

_PAUSE = 0.003
_PAUSE_MAX = 0.025
_GROWTH = 1.25
"""Growth of the pause: the wait exceeds the coordinator's busy time by at most a fifth."""

_BACKOFF_MAX = 5.0
"""Longest pause of a lane that fails again and again, in seconds."""

_COMPLETING = frozenset({"CONCURRENT_TRANSACTIONS"})
_LOADING = _COMPLETING | {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"}


def is_busy(error: ApplianceError) -> bool:
    """True for any error that a broker calls transient."""
    return isinstance(error, BrokerBusy)


def is_completing(error: ApplianceError) -> bool:
    """True when a coordinator has to finish the transaction before first."""
    return isinstance(error, BrokerBusy) and error.code in _COMPLETING


def is_loading(error: ApplianceError) -> bool:
    """True when a coordinator cannot give an epoch yet, or another broker is the coordinator."""
    return isinstance(error, BrokerBusy) and error.code in _LOADING


def is_passing(error: ApplianceError) -> bool:
    """True of an error after which a lane is taken again: its replicator may have restarted it just then."""
    return error.retriable or isinstance(error, Fenced)


async def back_off(failures: int, stopping: asyncio.Event) -> None:
    """Wait before a lane's next try, longer after more failures in a row; not once ``stopping`` is set."""
    pause = min(_BACKOFF_MAX, 0.05 * 2**failures)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(pause * random.uniform(0.5, 1)):
            await stopping.wait()


async def retry_while_busy(
    ask: Callable[[], Awaitable[Answer]],
    passing: Callable[[ApplianceError], bool] = is_busy,
    longest_pause: float = _PAUSE_MAX,
) -> Answer:
    """Repeat a question until its answer is no ``passing`` error.

    Raises:
        ApplianceError: another error, or one that lasts three quarters of a minute.
    """
    deadline = loop_seconds() + _PATIENCE
    pause = _PAUSE
    while True:
        try:
            return await ask()
        except ApplianceError as error:
            if not passing(error) or loop_seconds() > deadline:
                raise
        await asyncio.sleep(pause * random.uniform(0.5, 1))  # two links that fence each other must not stay in step
        pause = min(_GROWTH * pause, longest_pause)
