"""The secrets that settings hold, whether or not the settings are valid, and the settings without them.

A secret is the value of a variable that is declared as one; the login and the query of a URL; an argument of a command;
the content of a file that a variable for a key or a secret names; a value whose variable is not known, since its name
may be misspelt; and, in the environment of the process, the value of each variable that is called like a secret.
"""

import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from appliance.errors import SettingsError
from appliance.settings.one_topic import ONE_TOPIC_NAMES
from appliance.settings.shell_lines import read_lines
from appliance.settings.variable import Variable
from appliance.settings.variables import table_of
from appliance.spark.passed_conf import CONFIDENTIAL

_FILE_MAX = 1024 * 1024
_ARGUMENT_MIN = 4
_UNKNOWN_MIN = 6
"""Length from which a value is taken for a secret that is not declared as one: a shorter one may be any word."""

_OF_COMPOSE = r"\s*(export\s+)?(COMPOSE_\w+|APPLIANCE_NETWORK)\s*="
"""Lines of .env that tell Compose where its files are."""

_SHOWN_ANYWAY = frozenset({"", "yes", "no", "true", "false"})


@dataclass(frozen=True, slots=True)
class KnownSettings:
    """The settings: their ``values``, as a reader outside may see them, their secrets, and what could not be read."""

    values: Mapping[str, str] = field(repr=False)
    shown: str
    secrets: frozenset[str] = field(repr=False)
    unread: tuple[str, ...] = ()


def known_settings(path: Path, process: Mapping[str, str]) -> KnownSettings:
    """The settings of the file and of the process's environment, with the secrets in the files of the containers.

    Raises:
        SettingsError: this user may not read a file that may hold a secret, which could not be masked.
    """
    own = _known(path, process)
    folders = dict.fromkeys((path.parent.absolute(), Path().absolute()))
    prepared = [_known(each, {}) for folder in folders for each in sorted(folder.glob("prepared/*.sh"))]
    unread = dict.fromkeys((*own.unread, *(line for each in prepared for line in each.unread)))
    of_compose = (_of_compose(_content(each / ".env", [])) for each in folders)
    secrets = own.secrets.union(*(each.secrets for each in prepared), *of_compose)
    return replace(own, secrets=secrets, unread=tuple(unread))


def named_like_secrets(environment: Mapping[str, str]) -> frozenset[str]:
    """The values of variables of any program that are called like a secret."""
    values = (value for name, value in environment.items() if re.search(CONFIDENTIAL, name))
    return frozenset(value for value in values if len(value) >= _UNKNOWN_MIN)


def _of_compose(text: str) -> frozenset[str]:
    """The values of the user's own lines in .env, a faulty one of which Compose prints, and those below it."""
    lines = (line.strip().partition("=") for line in text.splitlines() if not re.match(_OF_COMPOSE, line))
    values = [value.strip() for _, _, value in lines]
    known = (each for value in values for each in (value, value.strip("'\""), value.partition(" #")[0].strip(" '\"")))
    return frozenset(each for each in known if len(each) >= _UNKNOWN_MIN)


def _known(path: Path, process: Mapping[str, str]) -> KnownSettings:
    unread: list[str] = []
    text = _content(path, unread)
    file, faults = _assigned(text)
    comments = "\n".join(row.lstrip("# \t") for row in text.split("\n") if row.lstrip().startswith("#"))
    values = {**dict(file), **process}
    table = {name: each for each in table_of(values) for name in each.names}
    secrets, lines = set(named_like_secrets(process)), list[str]()
    for name, value in (*file, *process.items()):
        origin, variable = path.name if (name, value) in file else "environment", table.get(name)
        if variable or origin == path.name:
            lines.append(f"{name}={_shown(variable, name, value)!r}  # {origin}")
            secrets |= set(_secrets_of(variable, name, value, unread))
    for name, value in _assigned(comments)[0]:
        if (variable := table.get(name)) and variable.confidential:
            secrets |= set(_secrets_of(variable, name, value, []))
    shown = "\n".join([*lines, *faults, ""])
    return KnownSettings(values, shown, frozenset(secrets - _SHOWN_ANYWAY), tuple(unread))


def _assigned(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The names and values in a file, also of a name that has several, and the faults of its lines.

    The value of a faulty line is what follows its name.
    """
    pairs, faults = list[tuple[str, str]](), list[str]()
    rows = text.split("\n")
    for line in read_lines(text):
        value = line.value
        if line.fault:
            faults.append(f"# line {line.number}: {line.fault}")
            value = rows[line.number - 1].partition("=")[2].strip().strip("'\"")
        pairs.append((line.name or f"line {line.number}", value))
    return pairs, faults


def _shown(variable: Variable[object] | None, name: str, value: str) -> str:
    if variable is None:
        return value if name in ONE_TOPIC_NAMES else "**** (no variable of this release)" if value else ""
    return value if name != variable.name else variable.shown(value) if value else ""


def _secrets_of(variable: Variable[object] | None, name: str, value: str, unread: list[str]) -> Iterator[str]:
    if variable is None:
        yield from (each for each in (value, value.strip()) if len(each) >= _UNKNOWN_MIN)
    elif variable.confidential and name == variable.name:
        yield value
        yield value.strip()
    elif name.endswith("_FILE"):
        content = _content(Path(value), unread).strip("\r\n") if value else ""
        if variable.confidential or "PRIVATE KEY" in content:
            yield content
    elif name.endswith("_COMMAND"):
        _, *arguments = value.split() or [""]
        words = (word for argument in arguments for word in _secrets_of_argument(argument))
        yield from (word for word in words if len(word) >= _ARGUMENT_MIN)
    elif "://" in value:
        yield from (secret for url in re.split(r"[,\s]+", value) for secret in _secrets_of_url(url))


def _secrets_of_argument(argument: str) -> Iterator[str]:
    """The value behind an option's name, or the whole argument; a value may have, or end in, ``=`` as base64 does."""
    name, _, value = argument.partition("=")
    if value:
        yield value
        yield argument.rpartition("=")[2]
    if not name.startswith("-"):
        yield argument


def _secrets_of_url(url: str) -> Iterator[str]:
    """The password, or what stands alone before the host, and the values of the query, as they are and decoded.

    A password may have a slash, and a path an @.
    """
    before, _, query = url.partition("?")
    rest = before.partition("://")[2]
    logins = [part.rpartition("@")[0] for part in (rest, rest.partition("/")[0])]
    passwords = [login.partition(":")[2] or login for login in logins]
    for each in filter(None, [*passwords, *(part.partition("=")[2] for part in re.split("[&#;]", query))]):
        yield each
        yield urllib.parse.unquote_plus(each)


def _content(path: Path, unread: list[str]) -> str:
    try:
        if not path.is_file():
            raise FileNotFoundError(0, "no such file")
        with path.open("rb") as file:
            return file.read(_FILE_MAX).decode("utf-8", "surrogateescape")
    except PermissionError as error:
        cure = "what it holds could not be masked; run this as the user who has prepared the VM, or as root"
        raise SettingsError([f"{path}: permission denied: {cure}"]) from error
    except OSError as error:
        unread.append(f"{path}: {error.strerror}")
        return ""
