"""Secrets that mask themselves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret that masks itself wherever it is printed, formatted or logged; ``reveal`` is the only way to it."""

    _text: str

    def reveal(self) -> str:
        """The secret itself, for the one call that needs it."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "Secret(****)"

    def __str__(self) -> str:
        return "****"
