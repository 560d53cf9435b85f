"""Long lists and large numbers for people: the first of a list and the number of the others, totals, ``3,255``.

And the nearest of some names to a mistyped one.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

_LINES_MAX = 40

_ALIKE = 0.75
"""Alikeness, 0 to 1, of a word that is mistyped: a swap of two of four letters. Fewer letters are like too much."""

_LETTERS_MIN = 4


def number(count: float | None, decimals: int = 0) -> str:
    """A count, or an offset: ``3,255``; None is unknown."""
    return "unknown" if count is None else f"{count:,.{decimals}f}"


def counted(count: int, noun: str) -> str:
    """``1 record``, ``3,255 records``."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def totals(noun: str, states: Iterable[str], *sums: str) -> str:
    """The line below a table of these states: ``43 partitions: 41 copying, 2 stopped; lag 1,234``."""
    counts = Counter(states)
    of_each = ", ".join(f"{number(count)} {state}" for state, count in counts.most_common())
    return "; ".join([f"{counted(counts.total(), noun)}{': ' if counts else ''}{of_each}", *sums])


def some(names: Sequence[object], most: int = 3, separator: str = ", ") -> str:
    """The first few in one text, and the number of the others."""
    more = f" and {number(len(names) - most)} more" if len(names) > most else ""
    return separator.join(map(str, names[:most])) + more


def first_lines(lines: Sequence[object], kind: str, most: int = _LINES_MAX) -> Iterator[str]:
    """The first of a command's lines, and the number of the others, which are of this kind."""
    yield from map(str, lines[:most])
    if len(lines) > most:
        yield f"... and {number(len(lines) - most)} {kind} more: --json shows all"


def nearest(name: str, names: Iterable[str], cutoff: float = _ALIKE) -> str:
    """The name that is most like a mistyped one, whatever its case; empty if none is alike by ``cutoff``, 0 to 1."""
    by_letters = {each.lower().lstrip("-"): each for each in names}
    found = difflib.get_close_matches(name.lower().lstrip("-"), by_letters, 1, cutoff)
    return next((by_letters[each] for each in found), "")


def did_you_mean(name: str, names: Iterable[str], kind: str, cutoff: float = _ALIKE) -> str:
    """The fault of a name of this kind that does not exist, with the nearest that does."""
    found = nearest(name, names, cutoff) if len(name) >= _LETTERS_MIN else ""
    return f"{name}: no such {kind}" + (f": did you mean {found}?" if found else "")
