"""A clock that a test sets."""

from dataclasses import dataclass


@dataclass(slots=True)
class Clock:
    """A clock in seconds that stands still until the test sets it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
