"""The file .env, by which Compose finds the link's files. Its other lines are the user's, and stay as they are.

Compose takes a variable of the shell before one of .env.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import SettingsError
from deploy.prepare.writing import Outcome, write_over
from deploy.render.compose import COMPOSE_FILE

ENV_FILE = ".env"
NETWORK = "APPLIANCE_NETWORK"
"""The variable without which the docker-compose.yml in Git ends Compose. Its value is the name of the network."""

_HEAD = "# Two lines of the prepare script, by which Compose finds the files of the link. All other lines are yours."
_FILES, _SEPARATOR = "COMPOSE_FILE", "COMPOSE_PATH_SEPARATOR"
_OURS = ["docker-compose.yml", COMPOSE_FILE]
_OVERRIDES = tuple(f"{name}.override.{end}" for name in ("docker-compose", "compose") for end in ("yml", "yaml"))
_NEW_FILE_MODE = 0o644


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The file with our lines in it; ``old`` is its present text, None if there is none."""

    text: str
    old: str | None

    @property
    def new_lines(self) -> tuple[str, ...]:
        """The lines that are new in it, all of them ours."""
        present = (self.old or "").splitlines()
        return tuple(f"+{line}" for line in self.text.splitlines() if line not in present)

    def hidden_by(self, process: Mapping[str, str]) -> list[str]:
        """A warning if COMPOSE_FILE of the shell differs, or what separates its files: Compose takes them first."""
        expected = {_FILES: _value(self.text, _FILES), _SEPARATOR: _value(self.text, _SEPARATOR) or ":"}
        return [
            f"{name} is set in this shell, and Compose takes it before the one in {ENV_FILE}: unset {name}"
            for name, value in expected.items()
            if process.get(name, "") not in ("", value)
        ]


def prepared_env(folder: Path, network: str) -> EnvFile:
    """The file as it should be, in the folder of the link that has this network.

    Raises:
        SettingsError: it cannot be read, or lists other files than ours first.
    """
    old = _read(folder / ENV_FILE)
    text, separator = old or "", _value(old or "", _SEPARATOR) or ":"
    listed = _value(text, _FILES)
    files = listed.split(separator) if listed else _OURS
    if files[:2] != _OURS:
        expected = f"expected {separator.join(_OURS)} first, and then files of your own"
        raise SettingsError([f"{ENV_FILE}: {_FILES}={listed}: {expected}"])
    overrides = [name for name in _OVERRIDES if (folder / name).exists()]
    files = [*_OURS, *overrides, *(name for name in files[2:] if name not in _OVERRIDES)]
    joined = separator.join(files)
    joined = f"'{joined}'" if " #" in joined else joined
    return EnvFile(_with(text, [f"{_FILES}={joined}", f"{NETWORK}={network}"]), old)


def write_env(folder: Path, file: EnvFile, *, dry: bool) -> Outcome:
    """Write the file if it differs, over the present one, whose owner and mode stay; ``dry``: only the outcome."""
    path = folder / ENV_FILE
    try:
        mode = path.stat().st_mode & 0o7777 if file.old is not None else _NEW_FILE_MODE
        if file.text != file.old and not dry:
            with open(os.open(path, os.O_RDWR | os.O_CREAT, mode), "r+b") as opened:
                os.fchmod(opened.fileno(), mode)
                write_over(opened, file.text)
    except OSError as error:
        raise _unusable(error) from error
    if file.old is None:
        return Outcome(ENV_FILE, mode, "new")
    return Outcome(ENV_FILE, mode, "unchanged" if file.text == file.old else "changed", file.new_lines)


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise SettingsError([f"{ENV_FILE}: expected UTF-8 text, byte {error.start} is none"]) from error
    except OSError as error:
        raise _unusable(error) from error


def _unusable(error: OSError) -> SettingsError:
    return SettingsError([f"{ENV_FILE}: cannot be read or written: {error.strerror}"])


def _value(text: str, name: str) -> str:
    """The value that Compose reads: the last one, without quotes and comment; empty if there is none."""
    values = [_unquoted(found[1].strip()) for found in _lines_of(name).finditer(text)]
    return values[-1] if values else ""


def _unquoted(value: str) -> str:
    """A value without quotes and comment; in quotes, # begins none."""
    if quoted := re.match(r"(['\"])(.*?)\1", value):
        return quoted[2]
    return value.partition(" #")[0].strip().strip("'\"")


def _with(text: str, ours: Sequence[str]) -> str:
    """The text with our lines: in place of those of the same name, or at the end."""
    added = ""
    for line in ours:
        name = line.partition("=")[0]
        if _lines_of(name).search(text):
            text = _lines_of(name).sub(line.replace("\\", r"\\"), text)
        else:
            added += f"{line}\n"
    if not added:
        return text
    return "".join(
        [text, "" if text.endswith("\n") or not text else "\n", "" if _HEAD in text else f"{_HEAD}\n", added]
    )


def _lines_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*(?:export[ \t]+)?{name}[ \t]*=([^\r\n]*)", re.MULTILINE)
