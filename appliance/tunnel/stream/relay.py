"""Relay bytes between two channels until both directions have ended, or one channel is lost.

    near -> far, far -> near       each: bytes ... end of the source -> end of the target

- *Backpressure*: a direction whose target is congested stops reading its source, and continues when the target is
  relieved. What waits in this process is bounded for each direction by one read, and for all together by ``memory``.
- *Half-close*: the end of one direction is passed on, and the other one lives for as long as bytes still move in it;
  after ``linger`` seconds without any, both channels are reset.
- *Idleness*: a relay that carries nothing in either direction for ``idle`` seconds is ended by resets.
- *Loss*: a channel that is lost takes the other one with it, by a reset, so that a cut is not taken for a regular end.
"""

import asyncio
import contextlib
import dataclasses
import enum
from collections.abc import Callable
from dataclasses import dataclass

from appliance.errors import ApplianceError
from appliance.tunnel.limits.counters import Counters, Meter
from appliance.tunnel.stream.channel import Channel

_CHECKS = 4
"""Checks of a relay within the time that it may be silent."""


class End(enum.StrEnum):
    """The reason why a relay is over."""

    COMPLETE = "both directions ended"
    NEAR_LOST = "the near connection was lost"
    FAR_LOST = "the far connection was lost"
    SILENT = "nothing came after one direction had ended"
    IDLE = "nothing was carried for longer than TUNNEL_IDLE_SECONDS"


@dataclass(frozen=True, slots=True)
class RelaySummary:
    """The result of a relay: bytes each way, and its duration; the target is on the far side."""

    bytes_to_target: int
    bytes_from_target: int
    seconds: float
    end: End

    def fields(self) -> dict[str, object]:
        """The result as fields of a log line."""
        return {**dataclasses.asdict(self), "seconds": round(self.seconds, 3), "end": self.end.value}


class _Progress:
    """The progress of the two directions.

    ``ending`` is set when the relay's end has begun, by the end of one direction, ``over`` when nothing more will come.
    """

    def __init__(self) -> None:
        self._ended = 0
        self.end = End.COMPLETE
        self.ending = asyncio.Event()
        self.over = asyncio.Event()

    def direction_ended(self) -> None:
        self._ended += 1
        self.ending.set()
        if self._ended == 2:
            self.over.set()

    def channel_lost(self, end: End) -> None:
        if not self.over.is_set():
            self.end = end
        self.ending.set()
        self.over.set()


class _Direction:
    """The receiver of one channel, which sends arriving bytes to the other one."""

    def __init__(self, source: Channel, target: Channel, progress: _Progress, end_if_lost: End, meter: Meter) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._end_if_lost = end_if_lost
        self._meter = meter
        self.carried = 0

    def received(self, data: bytes | memoryview) -> None:
        self.carried += len(data)
        self._meter.bytes += len(data)
        self._target.send(data)
        if self._target.congested:
            self._source.pause()

    def ended(self) -> None:
        self._target.send_eof()
        self._progress.direction_ended()

    def lost(self, error: ApplianceError) -> None:  # noqa: ARG002
        self._progress.channel_lost(self._end_if_lost)

    def relieved(self) -> None:
        # The source can be written to again, so the channel that feeds it may be read again.
        self._target.resume()


async def relay(near: Channel, far: Channel, linger: float, idle: float, counters: Counters) -> RelaySummary:
    """Carry bytes between two channels until both directions have ended; then both are closed in any case."""
    counters.carrying += 1
    clock = asyncio.get_running_loop().time
    started = clock()
    progress = _Progress()
    outward = _Direction(near, far, progress, End.NEAR_LOST, counters.to_target)
    inward = _Direction(far, near, progress, End.FAR_LOST, counters.from_target)
    try:
        near.attach(outward)
        far.attach(inward)
        end = await _wait(progress, outward, inward, linger, idle)
        if end is End.COMPLETE:
            await _close(near, far, linger)
    finally:
        counters.carrying -= 1
        near.reset()
        far.reset()
    counters.ended[end.name] += 1
    return RelaySummary(outward.carried, inward.carried, clock() - started, end)


async def _wait(progress: _Progress, outward: _Direction, inward: _Direction, linger: float, idle: float) -> End:
    def carried() -> int:
        return outward.carried + inward.carried

    if not await _comes(progress.ending, carried, idle):
        return End.IDLE
    if not await _comes(progress.over, carried, linger):
        return End.SILENT
    return progress.end


async def _comes(event: asyncio.Event, carried: Callable[[], int], patience: float) -> bool:
    """True if ``event`` comes before nothing has been carried for ``patience`` seconds, give or take a quarter.

    A check now and then is cheaper than reading the clock at every read.
    """
    before, quiet = carried(), 0
    while not event.is_set() and quiet < _CHECKS:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience / _CHECKS):
                await event.wait()
        quiet = quiet + 1 if carried() == before else 0
        before = carried()
    return event.is_set()


async def _close(near: Channel, far: Channel, seconds: float) -> None:
    near.close()
    far.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await near.closed()
            await far.closed()
