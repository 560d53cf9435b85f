"""Times as people and machines read them."""

from datetime import UTC, datetime


def utc(milliseconds: int) -> str:
    """A time in milliseconds as ISO 8601, in UTC: ``2026-11-21T02:45:51.123Z``."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
