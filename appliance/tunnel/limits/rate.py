"""How often something may happen: a token bucket; pure."""

from collections.abc import Callable


class RateLimit:
    """Admits ``rate`` a second in the long run, and up to ``burst`` at once after a pause.

    Args:
        clock: seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left = burst
        self._at = clock()

    def admits(self) -> bool:
        """True, and one fewer is left, if one more may happen now."""
        self._fill()
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def relaxed(self) -> bool:
        """True if at least half of a burst may happen now."""
        self._fill()
        return 2 * self._left >= self._burst

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self._burst, self._left + self._rate * (now - self._at))
        self._at = now
