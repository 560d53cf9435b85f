"""Two channels become one way for bytes, until both directions have ended, or one channel is lost.

    near -> far, far -> near       each: bytes ... end of the source -> end of the target

- *Backpressure*: a direction whose target is congested stops reading its source, and goes on when the target is
  relieved. What waits in this process is bounded for each direction by ``WRITE_HIGH`` and one read.
- *Half-close*: the end of one direction is passed on, and the other one lives for as long as bytes still move in it;
  after ``linger`` seconds without any, both channels are reset.
- *Loss*: a channel that is lost takes the other one with it, by a reset, so that nobody takes a cut for a regular end.
"""

import asyncio
import contextlib
import dataclasses
import enum
from dataclasses import dataclass

from appliance.errors import ApplianceError
from appliance.tunnel.channel import Channel


class End(enum.StrEnum):
    """Why a relay is over."""

    COMPLETE = "both directions ended"
    NEAR_LOST = "the near connection was lost"
    FAR_LOST = "the far connection was lost"
    IDLE = "nothing came after one direction had ended"


@dataclass(frozen=True, slots=True)
class RelaySummary:
    """What a relay did: bytes each way, and for how long; the target is on the far side."""

    bytes_to_target: int
    bytes_from_target: int
    seconds: float
    end: End

    def fields(self) -> dict[str, object]:
        """The same for a log line."""
        return {**dataclasses.asdict(self), "seconds": round(self.seconds, 3), "end": self.end.value}


class _Progress:
    """How far the two directions are.

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
    """The receiver of one channel, which sends what arrives there to the other one."""

    def __init__(self, source: Channel, target: Channel, progress: _Progress, end_if_lost: End) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._end_if_lost = end_if_lost
        self.carried = 0

    def received(self, data: bytes | memoryview) -> None:
        self.carried += len(data)
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


async def relay(near: Channel, far: Channel, linger: float) -> RelaySummary:
    """Carry bytes between two channels until both directions have ended; then both are closed, come what may."""
    clock = asyncio.get_running_loop().time
    started = clock()
    progress = _Progress()
    outward = _Direction(near, far, progress, End.NEAR_LOST)
    inward = _Direction(far, near, progress, End.FAR_LOST)
    try:
        near.attach(outward)
        far.attach(inward)
        end = await _wait(progress, outward, inward, linger)
        if end is End.COMPLETE:
            await _close(near, far, linger)
    finally:
        near.reset()
        far.reset()
    return RelaySummary(outward.carried, inward.carried, clock() - started, end)


async def _wait(progress: _Progress, outward: _Direction, inward: _Direction, linger: float) -> End:
    await progress.ending.wait()
    carried = -1
    while not progress.over.is_set():
        if outward.carried + inward.carried == carried:
            return End.IDLE
        carried = outward.carried + inward.carried
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(linger):
                await progress.over.wait()
    return progress.end


async def _close(near: Channel, far: Channel, seconds: float) -> None:
    near.close()
    far.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await near.closed()
            await far.closed()
