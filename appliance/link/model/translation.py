"""The translation of an offset to the other side."""

import enum
from dataclasses import dataclass, replace


class TranslationState(enum.StrEnum):
    """The certainty of a translated offset."""

    EXACT = "exact"
    AHEAD = "ahead"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Translation:
    """An offset on the other side, None if unknown.

    A consumer that continues there reads exactly the records that it would have read next. An ``AHEAD`` offset lies
    ``behind`` offsets past the copied ones. ``reason`` explains an unknown offset, if there is more to say.
    ``start`` is the first offset of the log there, 0 if unknown.
    """

    offset: int | None
    state: TranslationState
    behind: int = 0
    reason: str = ""
    start: int = 0

    def within(self, start: int, end: int | None = None) -> "Translation":
        """The same in a log that begins and ends at these offsets."""
        if self.offset is None:
            return replace(self, start=start)
        return replace(self, offset=max(self.offset if end is None else min(self.offset, end), start), start=start)


NOT_KNOWN = Translation(None, TranslationState.UNKNOWN)


def not_known(reason: str) -> Translation:
    """The unknown answer, with the reason."""
    return Translation(None, TranslationState.UNKNOWN, reason=reason)
