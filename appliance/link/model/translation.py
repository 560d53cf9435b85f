"""The answer to the question where an offset of one side lies on the other."""

import enum
from dataclasses import dataclass


class TranslationState(enum.StrEnum):
    """The certainty of a translated offset."""

    EXACT = "exact"
    AHEAD = "ahead"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Translation:
    """An offset on the other side, None where it is not known.

    A consumer that goes on there reads exactly the records that it would have read next. An offset that is ``AHEAD``
    lies ``behind`` offsets past what is copied. ``reason`` says why nothing is known, where there is more to say.
    """

    offset: int | None
    state: TranslationState
    behind: int = 0
    reason: str = ""


NOT_KNOWN = Translation(None, TranslationState.UNKNOWN)


def not_known(reason: str) -> Translation:
    """The answer where nothing is known, with the reason."""
    return Translation(None, TranslationState.UNKNOWN, reason=reason)
