"""The last hour of a log; no IO."""

import re
from datetime import UTC, datetime

_TIME = re.compile(rb"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}")
_LOOKED_AT = 200


def since(text: bytes, begin: datetime) -> bytes:
    """The lines from the first one on that is not older than ``begin``.

    A line without a time in UTC belongs to the one before it. A log without times is taken whole.
    """
    lines, timed = text.splitlines(keepends=True), False
    for number, line in enumerate(lines):
        if found := _TIME.search(line[:_LOOKED_AT]):
            timed = True
            try:
                if datetime.fromisoformat(found[0].decode()).replace(tzinfo=UTC) >= begin:
                    return b"".join(lines[number:])
            except ValueError:
                continue
    return b"" if timed else text
