"""Secrets: texts that mask themselves, and the guesses that one withstands, as zxcvbn estimates them.

Law: a guess of a secret includes a guess of every part, so one strong part is enough. The judged part is the secret
without separators between words, which guessers try first; without repetitions, which the estimator would count again;
and without characters after the 72nd, because the estimator's time grows with the square of the length.

The source is Wheeler, zxcvbn: Low-Budget Password Strength Estimation, USENIX Security 2016. For random characters it
counts at least 10 guesses each, far fewer than they withstand.
"""

import base64
import functools
import math
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

GUESSES_MIN = 2**90
"""Guesses that a secret has to withstand: a recorded connection can be tried against as many as an attacker likes."""

_JUDGED = 72
_LOOKED_AT = 1024
_REPEATED = 5
"""Shortest text, in characters, that counts as a repetition."""

_FINDINGS = {
    "dictionary": "common words",
    "spatial": "neighbouring keys",
    "repeat": "repetitions",
    "sequence": "sequences such as abc or 123",
    "regex": "years",
    "date": "dates",
}
"""Our words for the estimator's patterns."""

_KNOWN = ("kafka", "replicator", "replication", "tunnel", "shared", "secret", "source", "destination", "cluster")
"""Words that an attacker would connect with a link."""


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


def weakness(secret: str, names: Iterable[str] = ()) -> str | None:
    """The reason why ``secret`` is too easy to guess, without any part of it; None when it is not.

    ``names`` are what others know of the link, such as the names of its clusters and hosts.
    """
    guesses, patterns = _judged(_without_repeats(re.sub(r"[\s._-]+", "", secret[:_LOOKED_AT]))[:_JUDGED], _words(names))
    if guesses >= GUESSES_MIN:
        return None
    cause = f"it holds {' and '.join(patterns)}" if patterns else "it is short"
    return (
        f"too easy to guess, it withstands 2^{math.log2(guesses):.0f} guesses and has to withstand "
        f"2^{math.log2(GUESSES_MIN):.0f}: {cause}"
    )


@functools.cache
def new_secret(_variable: str) -> str:
    """A strong secret for a variable, 264 random bits in base64; the same in each fault of a process."""
    return base64.b64encode(secrets.token_bytes(33)).decode()


def _words(names: Iterable[str]) -> tuple[str, ...]:
    split = {word.lower() for name in names for word in re.split(r"[^A-Za-z0-9]+", name)}
    return tuple(sorted(word for word in split.union(_KNOWN) if len(word) > 2))


def _without_repeats(text: str) -> str:
    """``text`` without what is in it a second time, in upper or lower case."""
    unique, at = "", 0
    while at < len(text):
        length = _REPEATED
        while at + length <= len(text) and text[at : at + length].lower() in unique.lower():
            length += 1
        if length > _REPEATED:
            at += length - 1
        else:
            unique += text[at]
            at += 1
    return unique


@functools.lru_cache(maxsize=8)
def _judged(text: str, words: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """The guesses, and what makes them few; once for a secret, though a process reads its settings again."""
    if not text:
        return 1, ()
    from zxcvbn import zxcvbn  # here, since it takes 60 ms and 15 MB: only where there is a secret to judge

    estimate = zxcvbn(text, words, _JUDGED)
    patterns = {match["pattern"] for match in estimate["sequence"]} & set(_FINDINGS)
    return int(estimate["guesses"]), tuple(phrase for pattern, phrase in _FINDINGS.items() if pattern in patterns)
