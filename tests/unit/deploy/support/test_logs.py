"""The last hour of a log."""

from datetime import UTC, datetime

import pytest

from deploy.support.logs import since

BEGIN = datetime(2026, 11, 28, 4, 0, 0, tzinfo=UTC)
OLD = b"2026-11-28T03:59:59.999Z INFO  tunnel: old\n  more of it\n"
NEW = b"2026-11-28T04:00:00.000Z INFO  tunnel: new\n  more of it\n"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (OLD + NEW, NEW),
        (OLD, b""),
        (NEW, NEW),
        (b"no time at all\n", b"no time at all\n"),
        (b"", b""),
        (
            OLD + b'{"at": "2026-11-28 04:30:00", "level": "INFO"}\n',
            b'{"at": "2026-11-28 04:30:00", "level": "INFO"}\n',
        ),
        (b"2026-99-99T99:99:99 no date\n" + NEW, NEW),
    ],
)
def test_the_lines_from_the_first_one_of_the_hour_on_are_kept(text: bytes, kept: bytes) -> None:
    assert since(text, BEGIN) == kept
