"""Times as text."""

from datetime import UTC, datetime


def utc(seconds: float) -> str:
    """A time in seconds since 1970 as ISO 8601, in UTC: ``2026-11-21T02:45:51.123Z``, or as their number."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s"


def clock(milliseconds: int) -> str:
    """A time in milliseconds as people read it, in UTC: ``2026-11-21 02:45:51``."""
    return utc(milliseconds / 1000)[:19].replace("T", " ")


def milliseconds(text: str) -> int:
    """The milliseconds since 1970 of such a text."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None or not 1970 <= time.year < 9999:
        raise ValueError(f"expected a time in UTC: {text}")
    return round(time.timestamp() * 1000)


def since_1970(text: str) -> int:
    """A time of ISO 8601 in milliseconds since 1970; without a zone it is UTC, as in Kafka's own commands."""
    time = datetime.fromisoformat(text)
    return max(0, int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000))
