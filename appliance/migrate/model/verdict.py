"""The rules for a key of another program's settings: it sets variables of ours, or there is a reason why not.

Law: a rule never raises. A value that our variable does not take is left, with the variable's own reason.
"""

import enum
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from appliance.settings.shell_lines import check_one_line
from appliance.settings.variables import BY_NAME

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}|\{\{.*?\}\}", re.DOTALL)
"""What a config provider of Kafka or a template replaces: ``${file:/path:key}``, ``${NAME}``, ``{{ name }}``."""


class Verdict(enum.StrEnum):
    """The outcome for a key."""

    CARRIED = "carried over"
    NEEDLESS = "nothing to set"
    LEFT = "not carried over"


@dataclass(frozen=True, slots=True)
class Translation:
    """The outcome for a key in one link.

    ``withheld`` are variables that must not be set, because with this key left they would copy too much.
    """

    verdict: Verdict
    reason: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()


Rule = Callable[[str], Translation]
"""From the value of a key to its outcome."""


def needless(reason: str) -> Rule:
    """A rule for what the link does anyway."""
    return lambda _: Translation(Verdict.NEEDLESS, reason)


def left(reason: str, *withheld: str) -> Rule:
    """A rule for what the link does not do."""
    return lambda _: Translation(Verdict.LEFT, reason, withheld=withheld)


def carried(variable: str, convert: Callable[[str], str] = str.strip, *, withholds: str = "", note: str = "") -> Rule:
    """A rule that sets ``variable`` to the converted value; if it cannot, ``withholds`` is not set either.

    A ValueError of ``convert`` has the reason why it cannot.
    """

    def rule(value: str) -> Translation:
        try:
            check_not_looked_up(value)
            converted = convert(value)
            check_one_line(converted)
            BY_NAME[variable].parse(converted)
        except ValueError as error:
            withheld = (withholds,) if withholds else ()
            return Translation(Verdict.LEFT, f"{variable} does not take it: {error}", withheld=withheld)
        return Translation(Verdict.CARRIED, note, {variable: converted})

    return rule


def by_value(rules: Mapping[str, Rule], otherwise: Rule) -> Rule:
    """A rule for each value, in lower case."""
    return lambda value: rules.get(value.strip().lower(), otherwise)(value)


def always(reason: str, *chosen: str) -> Rule:
    """A rule for what the link does whatever the value is; ``chosen`` are those that ask for it, in lower case."""
    return by_value(dict.fromkeys(chosen, needless(reason)), left(reason))


def yes_or_no(variable: str) -> Rule:
    """A rule that sets ``variable`` to yes for true, and to no for false."""
    yes, no = carried(variable, lambda _: "yes"), carried(variable, lambda _: "no")
    return by_value({"true": yes, "false": no}, left("neither true nor false"))


def check_not_looked_up(value: str) -> None:
    """Check that the value stands in the file itself."""
    if _PLACEHOLDER.search(value):
        raise ValueError("a config provider or a template fills it in; give the value itself")


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
