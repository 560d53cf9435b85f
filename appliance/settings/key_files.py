"""SSH keys in files, as ``ssh-keygen -t ed25519`` makes them.

Ed25519 alone: every OpenSSH since 6.5 has such a key, and there is nothing to choose in it.
"""

from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from appliance.settings.private_file import read_private

_PRIVATE = "expected an Ed25519 private key, as made by: ssh-keygen -t ed25519 -N ''"
_PUBLIC = "expected Ed25519 public keys, one a line as in a .pub file"


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The key in a file that others cannot read; the file's group may, as Kubernetes gives secrets to a container.

    Raises:
        ValueError: with what is expected.
    """
    content = _content(path, _PRIVATE, read_private)
    try:
        key = load_ssh_private_key(content, None)
    except TypeError as error:
        raise ValueError(f"{_PRIVATE}: it has a passphrase, which nobody is there to type") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{_PRIVATE}: no private key in it") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{_PRIVATE}: a key of another kind")
    return key


def read_public_keys(path: Path) -> tuple[Ed25519PublicKey, ...]:
    """The keys in a file: at least one; empty lines and comments do not count.

    Raises:
        ValueError: with what is expected.
    """
    lines = (line.strip() for line in _content(path, _PUBLIC, Path.read_bytes).splitlines())
    keys = tuple(_public_key(line) for line in lines if line and not line.startswith(b"#"))
    if not keys:
        raise ValueError(f"{_PUBLIC}: no key in it")
    return keys


def _public_key(line: bytes) -> Ed25519PublicKey:
    try:
        key = load_ssh_public_key(line)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{_PUBLIC}: a line that is none") from error
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{_PUBLIC}: a key of another kind")
    return key


def _content(path: Path, expected: str, read: Callable[[Path], bytes]) -> bytes:
    try:
        return read(path)
    except OSError as error:
        raise ValueError(f"{expected}: {error.strerror or 'not readable'}") from error
