"""Files that hold secrets: who else may read them, and what is in them."""

import os
import stat
from pathlib import Path

from appliance.settings.shell_lines import check_one_line

_SECRET_MAX = 4096
"""Bytes of a secret in a file, at most."""

_BYTE_ORDER_MARK = "\ufeff"
"""Some editors put it before UTF-8 text, where nobody sees it."""


def is_open_to_others(status: os.stat_result) -> bool:
    """Whether others than the file's user and group may do anything with it.

    The group may: that is how Kubernetes hands a secret to a container.
    """
    return bool(status.st_mode & stat.S_IRWXO)


def is_open_to_group(status: os.stat_result) -> bool:
    """Whether the group may do anything with it, and should not: it may read what root hands to another user."""
    handed = status.st_uid == 0 != os.geteuid()
    return bool(status.st_mode & (stat.S_IRWXG & ~stat.S_IRGRP if handed else stat.S_IRWXG))


def read_private(path: Path, limit: int = -1) -> bytes:
    """The content of a regular file that others cannot read; no more than ``limit`` bytes unless that is negative.

    Raises:
        OSError: it cannot be read.
        ValueError: others may read it, or it is no file; with what is expected.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("expected a regular file")
        if is_open_to_others(status):
            raise ValueError(
                f"expected a file that others cannot read: chmod o= {path} (a secret of Docker: mode 0440, of "
                "Kubernetes: defaultMode 0440)"
            )
        return file.read(limit)


def _without_waiting(path: str, flags: int) -> int:
    """A pipe that nobody writes to is refused, and not waited for."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_secret(path: Path) -> str:
    """The one line of text in a file that others cannot read, without the newline at its end.

    Raises:
        ValueError: with what is expected; it shows nothing of the content.
    """
    try:
        content = read_private(path, _SECRET_MAX + 1)
    except OSError as error:
        raise ValueError(f"expected a readable file: {error.strerror or 'not readable'}") from error
    try:
        text = content.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ValueError("expected UTF-8 text in it") from error
    if not text or len(content) > _SECRET_MAX:
        raise ValueError(f"expected a line of 1 to {_SECRET_MAX} bytes in it")
    check_one_line(text)
    if text.startswith(_BYTE_ORDER_MARK) or text != text.strip():
        raise ValueError("expected the secret alone, without a byte order mark or blanks around it")
    return text
