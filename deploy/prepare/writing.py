"""Write rendered files: atomically, and only if they differ; the differences are shown without secrets.

A container's settings file is overwritten in place: the container has mounted this very file, and reads parts of it
again while it runs (``appliance.settings.engine``).
"""

import difflib
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from appliance.errors import SettingsError
from appliance.settings.variables import TABLE
from deploy.render.compose import RenderedFile
from deploy.render.container import SALT

_FOLDER, _FOLDER_MODE = "prepared", 0o711
"""The folder of the files. Whoever may use Docker must reach docker-compose.yml in it; each secret's file is closed."""

_OF_ANY_CLUSTER = r"\w{1,18}_(?:API_SECRET|SSL_KEY_PASSWORD)"
_CONFIDENTIAL = "|".join([*(variable.name for variable in TABLE if variable.confidential), _OF_ANY_CLUSTER])
_MENTIONED = re.compile(rf"({_CONFIDENTIAL})(?!\w*_FILE\b)", re.IGNORECASE)
"""The name of a secret in a line, even if the line is badly edited. The path of a file with a secret is not a
secret."""
_WRITTEN = re.compile(rf"export (?:{_CONFIDENTIAL})=")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a file: ``new``, ``replaced``, ``changed``, ``unchanged`` or ``removed``; ``lines`` show it."""

    path: str
    mode: int
    state: str
    lines: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """True when the file was written."""
        return self.state != "unchanged"


def write(folder: Path, file: RenderedFile, owner: tuple[int, int], *, dry: bool) -> Outcome:
    """Write the file in ``folder`` if it differs; with ``dry`` only return the outcome."""
    try:
        outcome = _compared(folder / file.path, file, owner)
        if outcome.changed and not dry:
            _replace(folder, file, owner)
    except OSError as error:
        raise SettingsError([f"{file.path}: cannot be read or written: {error.strerror}"]) from error
    return outcome


def remove(folder: Path, path: str, *, dry: bool) -> Outcome | None:
    """Remove the settings of a service that the VM does not run any more; None if they are not there."""
    if not (folder / path).exists():
        return None
    try:
        if not dry:
            (folder / path).unlink()
    except OSError as error:
        raise SettingsError([f"{path}: cannot be removed: {error.strerror}"]) from error
    return Outcome(path, 0o600, "removed")


def _compared(path: Path, file: RenderedFile, owner: tuple[int, int]) -> Outcome:
    try:
        status, old = path.stat(), path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return Outcome(file.path, file.mode, "new")
    lines = differences(file.path, old, file.text)
    if old.partition("\n")[0] != file.text.partition("\n")[0]:
        return Outcome(file.path, file.mode, "replaced")
    if stat.S_IMODE(status.st_mode) != file.mode:
        lines.append(f"{file.path}: mode {stat.S_IMODE(status.st_mode):04o} -> {file.mode:04o}")
    if _is_for_containers_alone(file) and (status.st_uid, status.st_gid) != owner:
        lines.append(f"{file.path}: owner {status.st_uid}:{status.st_gid} -> {owner[0]}:{owner[1]}")
    return Outcome(file.path, file.mode, "changed" if lines else "unchanged", tuple(lines))


def _is_for_containers_alone(file: RenderedFile) -> bool:
    """Make the file readable for the containers' user only; root also gives the file to that user."""
    return file.mode == 0o600


def _replace(folder: Path, file: RenderedFile, owner: tuple[int, int]) -> None:
    path = folder / file.path
    if _is_for_containers_alone(file) and path.is_file() and not path.is_symlink():
        _write_over(path, file, owner)
    else:
        _put(folder, file, owner)


def _write_over(path: Path, file: RenderedFile, owner: tuple[int, int]) -> None:
    with path.open("r+b") as old:
        os.fchmod(old.fileno(), file.mode)
        os.fchown(old.fileno(), *owner)
        write_over(old, file.text)


def write_over(file: BinaryIO, text: str) -> None:
    """Make this the text of an open file, without emptying it before."""
    file.write(text.encode())
    file.truncate()
    file.flush()
    os.fsync(file.fileno())


def _put(folder: Path, file: RenderedFile, owner: tuple[int, int]) -> None:
    (folder / _FOLDER).mkdir(exist_ok=True)
    (folder / _FOLDER).chmod(_FOLDER_MODE)
    descriptor, name = tempfile.mkstemp(dir=folder / _FOLDER, prefix=".")
    try:
        with open(descriptor, "w", encoding="utf-8") as new:
            new.write(file.text)
            new.flush()
            os.fsync(descriptor)
            if _is_for_containers_alone(file):
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, file.mode)
        Path(name).replace(folder / file.path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def differences(path: str, old: str, new: str) -> list[str]:
    """The lines of a unified diff from ``old`` to ``new``; none when they are equal.

    For a secret they only say that it has changed.
    """
    before, after = _entries(old), _entries(new)
    lines = difflib.unified_diff(
        _shown(before, after, "old"), _shown(after, before, "new"), f"{path} (old)", f"{path} (new)", n=0, lineterm=""
    )
    return list(lines)


def _entries(text: str) -> list[str]:
    """The lines of a text; a quoted assignment over several lines is one entry."""
    return re.findall(r"(?:[ \t]*(?:export[ \t]+)?\w+=(?:'[^']*'|\"(?:\\[\s\S]|[^\"\\])*\").*|.*)\n|.+\Z", text)


def _shown(entries: list[str], others: list[str], which: str) -> list[str]:
    known = set(others)
    return [_masked(entry, "" if entry in known else f" ({which})").rstrip("\n") for entry in entries]


def _masked(entry: str, mark: str) -> str:
    if mentioned := _MENTIONED.search(entry):
        start = _WRITTEN.match(entry)
        return f"{start[0] if start else f'{mentioned[0]} '}****{mark}"
    return f"{SALT}****{mark}" if entry.startswith(SALT) else entry
