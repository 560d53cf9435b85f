"""The time now: as records have it, and for deadlines."""

import asyncio
import time


def now_ms() -> int:
    """The time of day in milliseconds since 1970, as the timestamp of a record."""
    return time.time_ns() // 1_000_000


def loop_seconds() -> float:
    """The event loop's clock, in seconds: it never goes back, and means nothing outside of this process."""
    return asyncio.get_running_loop().time()
