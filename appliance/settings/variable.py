"""The declaration of a variable of setenv.sh, as the default of the field that holds its value.

::

    lanes: int = variable("LANES", whole(0, 1000), "0").purpose("Lanes (transactional ids ...) of a new link ...")

Everything else follows from the declaration: the table of all variables, the template, and the values that ``parse``
reads. A field that is made of several variables names them all; ``parse`` puts its value together.
"""

import dataclasses
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from appliance.settings.role import LOGIN, Member, Place, Role, Side, prefix_of
from appliance.settings.secret import Secret

REQUIRED = None
"""The default of a variable that its roles cannot do without."""

_MASK = "********"
_VARIABLES = "variables"

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Variable(Generic[_T_co]):
    """One variable: its purpose, the parser from its text to its value, and the roles that read it.

    ``side`` is the cluster that it is about, None if it is about neither or both.
    """

    name: str
    purpose: str
    parse: Callable[[str], _T_co]
    default: str | None = ""
    roles: Role = Role.REPLICATOR
    side: Side | None = None

    @property
    def confidential(self) -> bool:
        """True if the value is a secret: it is never shown, and may be in a file."""
        return self.parse is Secret

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
        return self.default is REQUIRED

    @property
    def absent(self) -> _T_co:
        """Its value where it is not set: the default's, or the empty value of its type."""
        return self.parse(self.default or "")


class _Declaration(Generic[_T]):
    """The variables of one field, before their purpose is given."""

    def __init__(self, *variables: Variable[_T]) -> None:
        self._variables = variables

    def purpose(self, text: str) -> _T:
        """The field, with the value where nothing is set as its default; ``{side}`` in the text is the cluster's."""
        variables = tuple(dataclasses.replace(each, purpose=text) for each in self._variables)
        default: Any = dataclasses.MISSING if variables[0].required else variables[0].absent
        return cast("_T", dataclasses.field(default=default, metadata={_VARIABLES: variables}))


def variable(
    name: str, parse: Callable[[str], _T], default: str | None = "", roles: Role = Role.REPLICATOR
) -> _Declaration[_T]:
    """Declare a field that holds the value of one variable."""
    return _Declaration(Variable(name, "", parse, default, roles))


def of_each_cluster(
    name: str,
    parse: Callable[[str], _T],
    default: str | None = "",
    roles: Role = LOGIN,
    roles_at_destination: Role = Role.REPLICATOR,
) -> _Declaration[_T]:
    """Declare a field of a cluster's settings: a variable for each side, SOURCE_ or DESTINATION_ and ``name``."""
    readers = {Side.SOURCE: roles, Side.DESTINATION: roles_at_destination}
    return _Declaration(
        *(Variable(f"{side.upper()}_{name}", "", parse, default, reader, side) for side, reader in readers.items())
    )


def made_of(*fields: Any) -> Any:
    """A field whose value ``parse`` puts together from the variables of these fields."""
    return dataclasses.field(metadata={_VARIABLES: tuple(each for field in fields for each in declared(field))})


def of_side(side: Side) -> Any:
    """A field that holds the settings of one cluster."""
    return dataclasses.field(metadata={"side": side})


def declared(field: "dataclasses.Field[Any]", place: Place | None = None) -> tuple[Variable[object], ...]:
    """The variables declared at a field; of a cluster's those of ``place``."""
    variables: tuple[Variable[object], ...] = field.metadata.get(_VARIABLES, ())
    if isinstance(place, Member):
        variables = _of_member(variables, place)
    side = place.side if isinstance(place, Member) else place
    return tuple(
        dataclasses.replace(each, purpose=each.purpose.replace("{side}", str(place)))
        for each in variables
        if each.side in (None, side)
    )


def _of_member(variables: tuple[Variable[object], ...], member: Member) -> tuple[Variable[object], ...]:
    """Those of a cluster of an order: its VM runs the tunnel's server, and the other VMs read it."""
    by_side = {each.side: each for each in variables}
    if Side.SOURCE not in by_side:
        return variables
    source, destination = by_side[Side.SOURCE], by_side[Side.DESTINATION]
    roles = destination.roles | source.roles & Role.SOURCE if member.own else source.roles & ~Role.SOURCE
    name = prefix_of(member.id) + source.name.removeprefix("SOURCE")
    return (dataclasses.replace(source, name=name, roles=roles, side=member.side),)


def declared_within(kind: type[Any], place: Place | None = None) -> Iterator[Variable[object]]:
    """The variables of a dataclass and of the dataclasses in its fields, in the order of the fields."""
    for field in dataclasses.fields(kind):
        yield from declared(field, place)
        for part in typing.get_args(field.type) or (field.type,):
            if isinstance(part, type) and dataclasses.is_dataclass(part):
                yield from declared_within(part, field.metadata.get("side", place))
