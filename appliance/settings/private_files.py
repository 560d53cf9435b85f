"""Files that hold secrets and SSH keys: the modes that are allowed, and the content that is expected.

SSH keys are Ed25519 alone, as ``ssh-keygen -t ed25519`` makes them: every OpenSSH since 6.5 has such a key, and it
offers nothing to choose.

A file that is refused raises ValueError with what is expected.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.settings.shell_lines import check_one_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_SECRET_MAX = 4096
"""Largest secret in a file, in bytes."""

_BYTE_ORDER_MARK = "\ufeff"
"""The invisible byte order mark that some editors put before UTF-8 text."""

_PRIVATE = "expected an Ed25519 private key, as made by: ssh-keygen -t ed25519 -N ''"
_PUBLIC = "expected Ed25519 public keys, one a line as in a .pub file"


def is_open_to_others(status: os.stat_result) -> bool:
    """True if others than the file's user and group may do anything with it.

    The group may: that is how Kubernetes hands a secret to a container.
    """
    return bool(status.st_mode & stat.S_IRWXO)


def is_open_to_group(status: os.stat_result) -> bool:
    """True if the group may do more with it than read what root hands to another user."""
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


def readable(path: Path, expected: str, read: Callable[[Path], bytes] = Path.read_bytes) -> bytes:
    """The content of a file; raises ValueError with what is ``expected``, and why it cannot be read."""
    try:
        return read(path)
    except OSError as error:
        landlock = ", by Landlock" if error.errno == errno.EACCES and os.access(path, os.R_OK) else ""
        raise ValueError(f"{expected}: {error.strerror or 'not readable'}{landlock}") from error


def _without_waiting(path: str, flags: int) -> int:
    """Refuse a pipe without a writer, and do not wait for one."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_secret(path: Path) -> str:
    """The one line of text in a file that others cannot read, without the newline at its end; no fault shows it."""
    content = readable(path, "expected a readable file", lambda file: read_private(file, _SECRET_MAX + 1))
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


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file that others cannot read; the file's group may, as Kubernetes gives secrets to a container."""
    from cryptography.exceptions import UnsupportedAlgorithm  # takes megabytes, and few links have SSH keys
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    content = readable(path, _PRIVATE, read_private)
    try:
        key = load_ssh_private_key(content, None)
    except TypeError as error:
        raise ValueError(f"{_PRIVATE}: it has a passphrase, which a service cannot enter") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{_PRIVATE}: no private key in it") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{_PRIVATE}: a key of another kind")
    return key


def read_public_keys(path: Path) -> tuple[Ed25519PublicKey, ...]:
    """The keys in a file: at least one; empty lines and comments do not count."""
    lines = (line.strip() for line in readable(path, _PUBLIC).splitlines())
    keys = tuple(_public_key(line) for line in lines if line and not line.startswith(b"#"))
    if not keys:
        raise ValueError(f"{_PUBLIC}: no key in it")
    return keys


def _public_key(line: bytes) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        key = load_ssh_public_key(line)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{_PUBLIC}: a line that is none") from error
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{_PUBLIC}: a key of another kind")
    return key
