"""A long line's arithmetic: when what enters it comes out."""

from dataclasses import dataclass

_QUEUE_SECONDS = 0.02


@dataclass(slots=True)
class Line:
    """One direction of the line, which all connections share, first come, first served.

    ``bandwidth`` is in bytes a second and ``delay`` the time of flight. Before its entrance stands a queue, as a
    router's, of 20 ms; who finds it longer has to wait, and nothing is ever lost. Times are in seconds of one clock.
    """

    bandwidth: float
    delay: float
    _free_at: float = 0.0

    def enter(self, now: float, size: int) -> float:
        """When the last of these bytes comes out, which are in the queue from ``now`` on.

        Later bytes come out later than earlier ones: each time is greater than the one before.
        """
        self._free_at = max(self._free_at, now) + size / self.bandwidth
        return self._free_at + self.delay

    @property
    def open_at(self) -> float:
        """From when on the queue is short enough for more."""
        return self._free_at - _QUEUE_SECONDS
