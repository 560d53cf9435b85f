"""The file setenv.sh: lines that a shell and this module read alike, in the grammar of ``shell_lines``."""

import os
import re
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TypeVar

from appliance.errors import SettingsError
from appliance.settings.one_topic import ONE_TOPIC_NAMES
from appliance.settings.order import OrderSettings, parse_order, parser_of
from appliance.settings.parse import parse
from appliance.settings.private_files import is_open_to_group, is_open_to_others
from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.shell_lines import ENDS_AS_ON_WINDOWS, Line, quoted, read_lines
from appliance.settings.values import Settings
from appliance.settings.variables import BY_NAME, GONE, members_in, name_fault, table_of

_REQUIRED = (*(name for each in BY_NAME.values() if each.required for name in each.names), *ONE_TOPIC_NAMES)
_USUAL = Path("setenv.sh")

_T = TypeVar("_T")


def usual_file(process: Mapping[str, str]) -> Path:
    """``setenv.sh`` here; an empty file where there is none, and the environment has settings that a link requires."""
    in_environment = any(process.get(name, "").strip() for name in _REQUIRED)
    return Path(os.devnull) if in_environment and not _USUAL.exists() else _USUAL


def read_settings(path: Path, role: Role, process: Mapping[str, str]) -> Settings:
    """The settings of ``role`` from the file ``path`` and the environment, which takes precedence."""
    return _read(path, role, process, parse)


def read_order(path: Path, role: Role, process: Mapping[str, str]) -> OrderSettings:
    """The same for a total order."""
    return _read(path, role, process, parse_order)


def read_either(path: Path, role: Role, process: Mapping[str, str]) -> Settings:
    """The same for a link, or for an order if GLOBAL_CLUSTERS names its clusters."""
    return _read(path, role, process, lambda environment, role: parser_of(environment)(environment, role))


def _read(path: Path, role: Role, process: Mapping[str, str], parse: Callable[[Mapping[str, str], Role], _T]) -> _T:
    faults = _mode_faults(path, role)
    lines = list(read_lines(_text(path)))
    faults += _line_faults(path, lines)
    unread = tuple(f"{line.name}: missing: " for line in lines if line.fault)
    try:
        settings = parse(_merged(_values(lines), process), role)
    except SettingsError as error:
        origin = _origin(path, lines, process)
        faults += [f"{origin(fault)}{fault}" for fault in error.faults if not fault.startswith(unread)]
    if faults:
        raise SettingsError(faults)
    return settings


def describes_order(path: Path, process: Mapping[str, str]) -> bool:
    """True if the file and the environment are those of an order; faults are left to who reads them."""
    try:
        lines = list(read_lines(_text(path)))
    except SettingsError:
        lines = []
    return bool(members_in(_merged(_values(lines), process)))


def load(path: Path, process: Mapping[str, str]) -> dict[str, str]:
    """The variables of the file ``path``, overruled by those that the process has; files with secrets are unread."""
    lines = list(read_lines(_text(path)))
    faults = _line_faults(path, lines)
    if faults:
        raise SettingsError(faults)
    return _merged(_values(lines), process)


def assignment(name: str, value: str) -> str:
    """The line of such a file that gives ``name`` the value, as it stands."""
    try:
        return f"export {name}={quoted(value)}\n"
    except ValueError as error:
        raise SettingsError([f"{name}: {error}"]) from error


def _mode_faults(path: Path, role: Role) -> list[str]:
    try:
        status = path.stat()
    except OSError as error:
        cure = f"cp setenv.sh.template {path} && chmod 600 {path}, then fill it in"
        if path == _USUAL and not role & TUNNEL_ENDS:
            raise SettingsError(_needed(cure)) from error
        raise SettingsError([f"{path}: {(error.strerror or '').lower()}: {cure}"]) from error
    if stat.S_ISREG(status.st_mode) and (is_open_to_others(status) or is_open_to_group(status)):
        return [f"{path}: holds secrets, and others may read it: chmod 600 {path}"]
    return []


def _needed(cure: str) -> list[str]:
    """The ways to give a replicator its settings; in a container, there may be nothing else to read about them."""
    return [
        f"no settings: there is no {_USUAL} here, and the environment has none",
        f"to copy one topic to one topic, set {', '.join(ONE_TOPIC_NAMES)}",
        f"to copy more: {cure}, or set its variables in the environment (docs/move/migrating.md)",
    ]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise SettingsError([f"{path}: expected UTF-8 text, byte {error.start} is none"]) from error


def _merged(environment: Mapping[str, str], process: Mapping[str, str]) -> dict[str, str]:
    """Drop the file's variables that the environment sets under either of their names."""
    merged = dict(environment)
    table = table_of({**environment, **process})
    for names in (*(variable.names for variable in table), *((name,) for name in (*ONE_TOPIC_NAMES, *GONE))):
        overriding = {name: process[name] for name in names if name in process}
        if overriding:
            merged = {name: text for name, text in merged.items() if name not in names} | overriding
    return merged


def _values(lines: Sequence[Line]) -> dict[str, str]:
    return {line.name: line.value for line in lines if line.name and not line.fault}


def _origin(path: Path, lines: Sequence[Line], process: Mapping[str, str]) -> Callable[[str], str]:
    """The place of the variable of a fault, which is told before it."""
    places = {line.name: f"{path}:{line.number}: " for line in lines if line.name}
    places |= dict.fromkeys(process, "environment: ")
    elsewhere = "" if path == Path(os.devnull) else f"{path}: "
    return lambda fault: places.get(re.split("[^A-Za-z0-9_]", fault, maxsplit=1)[0], elsewhere)


def _line_faults(path: Path, lines: Sequence[Line]) -> list[str]:
    windows = [line for line in lines if line.fault == ENDS_AS_ON_WINDOWS]
    lines = [line for line in lines if line not in windows[1:]]
    values = _values(lines)
    members, in_files = members_in(values), {each.name for each in table_of(values) if each.confidential}
    first = {line.name: line.number for line in reversed(lines) if line.name}
    faults = (
        (line.number, _cure(path, line, in_files) or name_fault(line.name, members) or _again(line, first))
        for line in lines
    )
    return [f"{path}:{number}: {fault}" for number, fault in faults if fault]


def _again(line: Line, first: Mapping[str, int]) -> str:
    """The fault of a name that a line before has, whose value would count for nothing; empty without one."""
    earlier = first.get(line.name or "", line.number)
    return f"{line.name}: set again: line {earlier} has it too: remove one" if earlier < line.number else ""


def _cure(path: Path, line: Line, in_files: Collection[str]) -> str:
    if line.cure:
        return f"{line.fault}: sed -i {line.cure} {quote(str(path))}"
    if line.expands and line.name in in_files:
        return f"{line.fault}; what a command would print: {line.name}_FILE=/path of a file that holds it"
    return line.fault
