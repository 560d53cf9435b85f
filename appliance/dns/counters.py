"""What became of the shim's queries, counted; somebody else makes metrics of it."""

import enum
from collections import Counter


class Outcome(enum.StrEnum):
    """How a query ended."""

    MAPPED = "mapped"
    FORWARDED = "forwarded"
    REFUSED = "refused"
    SERVFAIL = "servfail"
    MALFORMED = "malformed"
    DROPPED = "dropped"


QueryCounters = Counter[Outcome]
"""``MALFORMED`` are those that deserve no look-up, ``DROPPED`` those that came while too many were being answered."""
