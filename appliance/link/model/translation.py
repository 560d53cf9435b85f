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

    def within(self, start: int) -> "Translation":
        """The same in a log that begins at this offset."""
        return replace(self, offset=None if self.offset is None else max(self.offset, start), start=start)


NOT_KNOWN = Translation(None, TranslationState.UNKNOWN)


def not_known(reason: str) -> Translation:
    """The unknown answer, with the reason."""
    return Translation(None, TranslationState.UNKNOWN, reason=reason)
