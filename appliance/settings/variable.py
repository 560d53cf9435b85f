"""The declaration of a variable of setenv.sh, which stands in the annotation of the field that holds its value.

::

    lanes: Annotated[int, Variable("LANES", "Transactional ids ...", whole(0, 1000), "0")]

Everything else follows from the declaration: the table of all variables, the template, what ``parse`` reads. A field
that is made from several variables names them all; ``parse`` puts its value together. A field of ClusterSettings has a
variable for each side.
"""

import dataclasses
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from appliance.settings.role import LOGIN, Role, Side

_MASK = "********"

_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Variable(Generic[_T_co]):
    """One variable: its reason, the parser from its text to its value, and the roles that read it.

    ``default`` None means required, in the roles that it names. The value of a ``confidential`` variable is never
    shown, and may be in a file.
    """

    name: str
    reason: str
    parse: Callable[[str], _T_co]
    default: str | None = ""
    roles: Role = Role.REPLICATOR
    confidential: bool = False

    def shown(self, text: str) -> str:
        """Its text in views and faults: without a secret, a login and a query of a URL, and a command's arguments."""
        if self.confidential:
            return _MASK
        if self.name.endswith("_COMMAND"):
            return (text.split(maxsplit=1) or [""])[0]
        return re.split("[?#]", re.sub("://.*@", "://", text))[0] if "://" in text else text

    @property
    def names(self) -> tuple[str, ...]:
        """Its own name, and that of the file that may hold a confidential value."""
        return (self.name, f"{self.name}_FILE") if self.confidential else (self.name,)

    @property
    def required(self) -> bool:
        """True if the roles that it names cannot do without."""
        return self.default is None

    @property
    def absent(self) -> _T_co:
        """Its value where it is not set: the default's, or the empty value of its type."""
        return self.parse(self.default or "")


@dataclass(frozen=True, slots=True)
class BothSides:
    """The declarations of a field that both clusters have."""

    source: Variable[object]
    destination: Variable[object]

    @classmethod
    def of(
        cls,
        name: str,
        reason: str,
        parse: Callable[[str], object],
        default: str | None = "",
        *,
        roles: Role = LOGIN,
        confidential: bool = False,
    ) -> "BothSides":
        """The two variables of that ``name``; ``{side}`` may be in the reason.

        ``roles`` read the source's; only the replicator logs in to the destination.
        """
        readers = {Side.SOURCE: roles, Side.DESTINATION: Role.REPLICATOR}
        source, destination = (
            Variable(f"{side.upper()}_{name}", reason.format(side=side), parse, default, read, confidential)
            for side, read in readers.items()
        )
        return cls(source, destination)


def declared(kind: type, side: Side | None = None) -> dict[str, tuple[Variable[object], ...]]:
    """The variables declared at each field of a dataclass; of a cluster's those of ``side``."""
    return {
        name: tuple(_variables(hint, side)) for name, hint in typing.get_type_hints(kind, include_extras=True).items()
    }


def declared_within(kind: type, side: Side | None = None) -> Iterator[Variable[object]]:
    """The variables of a dataclass and of the dataclasses in its fields, in the order of the fields."""
    for hint in typing.get_type_hints(kind, include_extras=True).values():
        yield from _variables(hint, side)
        parts = typing.get_args(hint) or (hint,)
        own_side = next((part for part in _metadata(hint) if isinstance(part, Side)), side)
        for part in parts:
            if isinstance(part, type) and dataclasses.is_dataclass(part):
                yield from declared_within(part, own_side)


def _variables(hint: object, side: Side | None) -> Iterator[Variable[object]]:
    for part in _metadata(hint):
        if isinstance(part, Variable):
            yield part
        elif isinstance(part, BothSides):
            yield part.source if side is Side.SOURCE else part.destination


def _metadata(hint: object) -> tuple[object, ...]:
    return getattr(hint, "__metadata__", ())
