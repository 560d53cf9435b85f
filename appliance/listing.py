"""Long lists for people: the first of them, and the number of the others."""

from collections.abc import Iterator, Sequence

_LINES_MAX = 40


def some(names: Sequence[object], most: int = 3, separator: str = ", ") -> str:
    """The first few in one text, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(map(str, names[:most])) + more


def first_lines(lines: Sequence[object], kind: str, most: int = _LINES_MAX) -> Iterator[str]:
    """The first of a command's lines, and the number of the others, which are of this kind."""
    yield from map(str, lines[:most])
    if len(lines) > most:
        yield f"... and {len(lines) - most} {kind} more: --json shows all"
