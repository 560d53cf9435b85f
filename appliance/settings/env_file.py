"""The file setenv.sh: lines that a shell and this module read alike.

``export NAME='value' # comment``; quotes are single, double or absent. Nothing is interpolated: ``$`` is a character
like any other, as it is for a shell within single quotes. Lines whose words a shell would split or unquote in another
way are faults.
"""

import difflib
import io
import shlex
from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import Binding, parse_stream

from appliance.errors import SettingsError
from appliance.settings.parse import parse
from appliance.settings.role import Role
from appliance.settings.values import Settings
from appliance.settings.variables import TABLE

_NAMES = tuple(variable.name for variable in TABLE)
_OUR_PREFIXES = ("SOURCE_", "DESTINATION_", "TUNNEL_", "DNS_", "REPLICA_", "COMMIT_", "CONSOLE_")


def read_settings(path: Path, role: Role, process: Mapping[str, str]) -> Settings:
    """The settings of ``role`` from the file ``path`` and the environment of the process, which wins.

    Raises:
        SettingsError: with the faults of the file's lines and of its values together.
    """
    environment, faults = _scan(_text(path))
    try:
        settings = parse(_merged(environment, process), role)
    except SettingsError as error:
        faults += error.faults
    if faults:
        raise SettingsError(faults)
    return settings


def load(path: Path, process: Mapping[str, str]) -> dict[str, str]:
    """The variables of the file ``path``, overruled by those that the process has.

    Raises:
        SettingsError: no such file, lines that cannot be read, or names that are nearly ours.
    """
    environment, faults = _scan(_text(path))
    if faults:
        raise SettingsError(faults)
    return _merged(environment, process)


def assignment(name: str, value: str) -> str:
    """The line of such a file that gives ``name`` the value, as it stands.

    Raises:
        SettingsError: there is none: a file gives back a carriage return as another character.
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    for quoted in (f"'{value}'", f'"{escaped}"'):
        line = f"export {name}={quoted}\n"
        if _scan(line.replace("\r", "\n")) == ({name: value}, []):
            return line
    raise SettingsError([f"{name}: expected a value without a carriage return"])


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise SettingsError([f"{path}: no such file: copy setenv.sh.template to it, and fill it in"]) from error
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise SettingsError([f"{path}: expected UTF-8 text, byte {error.start} is none"]) from error


def _merged(environment: Mapping[str, str], process: Mapping[str, str]) -> dict[str, str]:
    return {**environment, **{name: process[name] for name in _NAMES if name in process}}


def _scan(text: str) -> tuple[dict[str, str], list[str]]:
    environment, faults = {}, []
    for binding in parse_stream(io.StringIO(text)):
        fault = _syntax_fault(binding) or _name_fault(binding.key)
        if fault:
            faults.append(f"line {_line(binding)}: {fault}")
        if binding.key is not None:
            environment[binding.key] = binding.value or ""
    return environment, faults


def _line(binding: Binding) -> int:
    """The line on which the binding's text begins; its own count includes the blank lines before it."""
    original = binding.original.string
    blank = original[: len(original) - len(original.lstrip())]
    return binding.original.line + blank.count("\n")


def _syntax_fault(binding: Binding) -> str | None:
    if binding.error or (binding.key is not None and binding.value is None):
        return "expected export NAME='value'"
    if binding.key is not None and _as_a_shell(binding.original.string) != f"{binding.key}={binding.value}":
        return f"expected export {binding.key}='value' with single quotes: a shell would read another value"
    return None


def _as_a_shell(line: str) -> str | None:
    """The one assignment that a shell finds in ``line``, unquoted; None when it finds anything else."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    assignment = words[1:] if words[:1] == ["export"] else words
    return assignment[0] if len(assignment) == 1 else None


def _name_fault(name: str | None) -> str | None:
    if name is None or name in _NAMES:
        return None
    nearest = difflib.get_close_matches(name.upper(), _NAMES, n=1, cutoff=0.8)
    if not nearest and not name.upper().startswith(_OUR_PREFIXES):
        return None
    nearest = nearest or difflib.get_close_matches(name.upper(), _NAMES, n=1, cutoff=0.0)
    return f"{name}: no such variable: did you mean {nearest[0]}?"
