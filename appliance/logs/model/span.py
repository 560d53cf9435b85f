"""A span of offsets, and the outcome of comparing two of them in a word."""

import enum
from dataclasses import dataclass


class CopyState(enum.StrEnum):
    """The outcome in a word."""

    EQUAL = "equal"
    """Every record that the source has is at the destination, in order, and nothing else in between."""
    EQUAL_IN_PART = "equal in part"
    """Equal, except for older records that the link was not asked to copy, or that the copy's retention has taken."""
    BEHIND = "behind"
    """Equal as far as the destination goes, which is not as far as the source."""
    DIFFERS = "differs"
    NO_COPY = "no copy"
    NOT_COMPARED = "not compared"
    """There is no result, and ``detail`` says why."""

    @property
    def well(self) -> bool:
        """True when no operator is needed."""
        return self in (CopyState.EQUAL, CopyState.EQUAL_IN_PART)


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets from ``start`` on, up to ``end``, which is past the last one."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start
