"""The outcomes of all keys of a file: each key once, also if several links use it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from appliance.migrate.model.verdict import Translation, Verdict

_WEIGHTS = {Verdict.NEEDLESS: 0, Verdict.LEFT: 1, Verdict.CARRIED: 2}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for a key: the variables that it sets in any link, and the reasons."""

    key: str
    verdict: Verdict
    variables: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        to = f" -> {', '.join(self.variables)}" if self.variables else ""
        return f"{self.key}{to}" + (f": {self.reason}" if self.reason else "")


class Ledger:
    """Collects what becomes of each key. It holds no value of the file."""

    def __init__(self) -> None:
        self._translations: dict[str, list[Translation]] = {}
        self._defaults: dict[str, list[Translation]] = {}

    def note(self, key: str, translation: Translation) -> None:
        """Note the outcome for a key in one link."""
        self._translations.setdefault(key, []).append(translation)

    def note_default(self, key: str, translation: Translation) -> None:
        """Note the outcome for the default of a key that the file does not have."""
        self._defaults.setdefault(f"(by default) {key}", []).append(translation)

    def outcomes(self, keys: Iterable[str], otherwise: Callable[[str], Translation]) -> tuple[Outcome, ...]:
        """The outcomes of ``keys``, in their order, then those of the defaults.

        ``otherwise`` has the outcome for a key that no link has used.
        """
        used = {key: self._translations.get(key) or [otherwise(key)] for key in keys}
        return tuple(_outcome(key, translations) for key, translations in (used | self._defaults).items())


def _outcome(key: str, translations: list[Translation]) -> Outcome:
    verdict = max((one.verdict for one in translations), key=_WEIGHTS.__getitem__)
    variables = sorted({name for one in translations for name in one.variables})
    reasons = dict.fromkeys(one.reason for one in translations if one.reason)
    return Outcome(key, verdict, tuple(variables), "; ".join(reasons))
