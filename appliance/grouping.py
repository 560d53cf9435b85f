"""Values by their keys, and values in pieces of a size."""

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key; both in the order in which they come."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def pieces(sized: Iterable[tuple[Value, int]], limit: int) -> Iterator[list[Value]]:
    """The values in pieces of at most ``limit``, in order; each comes with its size.

    One that is larger than that is a piece of its own.
    """
    piece: list[Value] = []
    whole = 0
    for each, size in sized:
        if piece and whole + size > limit:
            yield piece
            piece, whole = [], 0
        piece.append(each)
        whole += size
    if piece:
        yield piece
