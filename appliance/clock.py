"""The clock: the time of day, seconds that never go back, and deadlines."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from appliance.errors import ApplianceError, TimedOut


@dataclass(slots=True)
class Source:
    """The source of the time of day, in seconds since 1970."""

    of_day: Callable[[], float] = time.time


SOURCE = Source()
"""A test puts a time of its own here."""


def epoch_seconds() -> float:
    """The time of day in seconds since 1970."""
    return SOURCE.of_day()


def now_ms() -> int:
    """The time of day in milliseconds since 1970, as the timestamp of a record."""
    return int(epoch_seconds() * 1000)


def utc_now() -> datetime:
    """The time of day in UTC."""
    return datetime.fromtimestamp(epoch_seconds(), UTC)


def monotonic() -> float:
    """Seconds that never go back, and mean nothing outside of this process."""
    return time.monotonic()


def loop_seconds() -> float:
    """The event loop's clock, in seconds: as ``monotonic``, or the virtual time of a simulation."""
    return asyncio.get_running_loop().time()


@contextlib.asynccontextmanager
async def deadline(seconds: float, late: str, kind: type[ApplianceError] = TimedOut) -> AsyncIterator[None]:
    """End the block after that time, with an error that says ``late`` and within how many seconds."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise kind(f"{late} within {seconds:g} s") from error
