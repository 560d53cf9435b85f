"""One pass over the environment: the values of declared variables, and every fault of a single one."""

import dataclasses
import os.path
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast
from unicodedata import name

from appliance.settings.parsers import utf8, without_login
from appliance.settings.private_files import read_secret
from appliance.settings.role import Place, Role
from appliance.settings.secret import Secret
from appliance.settings.shell_lines import in_place_of
from appliance.settings.values import SecretFile
from appliance.settings.variable import Variable, declared
from appliance.settings.variables import BY_NAME

_T = TypeVar("_T")


class Reading:
    """One pass over the environment. A faulty value is noted and replaced, so that all faults are found."""

    def __init__(self, environment: Mapping[str, str], role: Role) -> None:
        self._environment = environment
        self.role = role
        self.faults: list[str] = []
        self.files: list[SecretFile] = []

    def build(self, kind: type[_T], place: Place | None = None, needless: Collection[str] = (), /, **ready: Any) -> _T:
        """An instance of a dataclass: the ``ready`` fields, and for the others the values of their variables.

        A field that is a dataclass is built too. ``place`` is the cluster's; the ``needless`` fields may be absent in
        every role.
        """
        values = dict(ready)
        for field in dataclasses.fields(cast("type[Any]", kind)):
            if field.name in ready:
                continue
            if variables := declared(field, place):
                values[field.name] = self.value(*variables, needed=field.name not in needless)
            elif dataclasses.is_dataclass(field.type):
                values[field.name] = self.build(cast("type[Any]", field.type), place)
        return kind(**values)

    def of_name(self, name: str, *, more: str = "") -> Any:
        """The value of the variable of that name, as ``value``; for fields that are made from several variables."""
        return self.value(BY_NAME[name], more=more)

    def value(self, variable: Variable[_T], *, needed: bool = True, more: str = "") -> _T:
        """The value of ``variable``; it may be absent where it has a default, or the role or ``needed`` says so.

        ``more`` follows the purpose where it is missing.
        """
        text = self._secret(variable) if variable.confidential else self._environment.get(variable.name, "").strip()
        if text is None:
            return variable.absent
        if not text:
            if variable.required and needed and variable.roles & self.role:
                self.faults.append(f"{variable.name}: missing: {variable.purpose}{more}")
            return variable.absent
        try:
            utf8(text)
            ends = text.strip(" \t")
            _check_visible(ends[:1] + ends[-1:] if variable.confidential else text)
            return variable.parse(text if variable.confidential else without_login(text))
        except ValueError as error:
            self.faults.append(f"{_shown(variable, text)}: {error}")
            return variable.absent

    def _secret(self, variable: Variable[_T]) -> str | None:
        """The text, or what is in its file, which is not opened where the role does not need it; None for a fault."""
        name, file_name = variable.names
        text, file = self._environment.get(name, ""), self._environment.get(file_name, "").strip()
        if not file:
            return text
        if text:
            self.faults.append(f"{name}, {file_name}: expected one of them, not both")
            return None
        if not variable.roles & self.role:
            return ""
        try:
            text = _read_absolute(file)
        except ValueError as error:
            self.faults.append(_file_fault(name, file_name, file, error))
            return None
        self.files.append(SecretFile(name, Path(file), Secret(text), variable.roles))
        return text


def _check_visible(text: str) -> None:
    """Refuse characters that nobody sees. Of a secret only its two ends are looked at."""
    if character := next((each for each in text if in_place_of(each) is not None), ""):
        raise ValueError(
            f"expected text without U+{ord(character):04X} ({name(character, '').lower()}), which is invisible"
        )


def _read_absolute(file: str) -> str:
    """A relative path would be another one in a container and on a Spark executor."""
    if not os.path.isabs(file):
        raise ValueError("expected the absolute path of a file")
    return read_secret(Path(file))


def _file_fault(name: str, file_name: str, file: str, error: ValueError) -> str:
    """Show the path of a file that exists, and no other: that may be the secret itself."""
    if os.path.isabs(file) and os.path.lexists(file):
        return f"{file_name}={file}: {error}"
    cause = "no such file" if os.path.isabs(file) and not isinstance(error.__cause__, PermissionError) else error
    return f"{file_name}: {cause} (if it is the secret itself, give it as {name})"


def _shown(variable: Variable[object], text: str) -> str:
    if variable.confidential:
        return variable.name
    return f"{variable.name}={variable.shown(text)}"
