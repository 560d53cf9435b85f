"""Times as text."""

from datetime import UTC, datetime


def utc(seconds: float) -> str:
    """A time in seconds since 1970 as ISO 8601, in UTC: ``2026-11-21T02:45:51.123Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(text: str) -> int:
    """The milliseconds since 1970 of such a text.

    Raises:
        ValueError, TypeError: it is none.
    """
    found = datetime.fromisoformat(text)
    if found.tzinfo is None or not 1970 <= found.year < 9999:
        raise ValueError(f"expected a time in UTC: {text}")
    return round(found.timestamp() * 1000)
