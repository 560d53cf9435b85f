"""What is to be known about a variable of setenv.sh."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from appliance.settings.role import Role

_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Variable(Generic[_T_co]):
    """One variable: why it is there, who needs it, and how its text becomes a value.

    ``default`` None means required. ``confidential`` means that its value is never shown, and may be in a file.
    """

    name: str
    reason: str
    roles: Role
    parse: Callable[[str], _T_co]
    default: str | None
    confidential: bool

    @property
    def names(self) -> tuple[str, ...]:
        """By which it is set: its own, and that of the file that holds it, where it is confidential."""
        return (self.name, f"{self.name}_FILE") if self.confidential else (self.name,)

    @property
    def required(self) -> bool:
        """Whether the roles that it names cannot do without."""
        return self.default is None

    @property
    def absent(self) -> _T_co:
        """Its value where it is not set: the default's, or the empty value of its type."""
        return self.parse(self.default or "")
