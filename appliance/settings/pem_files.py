"""PEM files of certificates and private keys: read, and checked for what an other end would refuse without a reason.

A file or a content that is refused raises ValueError with what is expected.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.clock import utc_now
from appliance.settings.private_files import read_private, readable
from appliance.settings.secret import Secret

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

Signature = tuple[tuple[int, int, int, int] | None, ...]


def signature_of(paths: Sequence[Path]) -> Signature:
    """A value that changes when one of the files is written or replaced."""
    return tuple(_state(path) for path in paths)


def _state(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_pem(path: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> bytes:
    """The content of a file."""
    return readable(path, "expected a readable PEM file", read)


def certificates(content: bytes) -> list[x509.Certificate]:
    """The certificates in PEM, at least one."""
    from cryptography import x509  # takes a megabyte, and most links have no certificate of their own

    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise ValueError("expected certificates in PEM") from error


def private_key(content: bytes, password: Secret | None = None, remedy: str = "") -> PrivateKeyTypes:
    """The private key in PEM; ``remedy`` is what to do about one with a password that is not given."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = password.reveal().encode() if password else None
    try:
        return load_pem_private_key(content, text)
    except TypeError as error:
        if text is not None:
            return private_key(content)
        raise ValueError(f"expected a key without a passphrase{remedy}") from error
    except ValueError as error:
        raise ValueError("expected a private key in PEM" + (", and its own password" if text else "")) from error


def is_pair(key: PrivateKeyTypes, certificate: x509.Certificate) -> bool:
    """True if the certificate is for that key."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(*public) == certificate.public_key().public_bytes(*public)


def check_time(certificate: x509.Certificate) -> None:
    """Raise ValueError if the certificate is not valid now."""
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not first <= utc_now() <= last:
        raise ValueError(f"expected a certificate that is valid now, this one is from {first} to {last}")


def read_private_pem(path: Path) -> bytes:
    """The content of a file that others cannot read."""
    return read_pem(path, read_private)


def read_authorities(variable: str, path: Path) -> bytes:
    """A file of certificates in PEM; raises ValueError: ``VARIABLE=file: what is expected``."""
    try:
        content = read_pem(path)
        certificates(content)
    except ValueError as error:
        raise ValueError(f"{variable}={path}: {error}") from error
    return content


def read_pair(
    certificate: tuple[str, Path], key: tuple[str, Path], password: Secret | None = None, remedy: str = ""
) -> bytes:
    """A key and its certificate with the chain, in PEM, from two files and their variables; ``remedy`` as above."""
    at = certificate
    try:
        chain = read_pem(certificate[1])
        leaf = certificates(chain)[0]
        check_time(leaf)
        at = key
        content = read_private_pem(key[1])
        if not is_pair(private_key(content, password, remedy), leaf):
            raise ValueError(f"expected the key of {certificate[0]}={certificate[1]}")
    except ValueError as error:
        raise ValueError(f"{at[0]}={at[1]}: {error}") from error
    return content + b"\n" + chain


@contextlib.contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """A path at which OpenSSL, which takes no key from memory here, can read ``content``; gone afterwards.

    The file is in memory where the system can do that, and otherwise a temporary one that only its owner may read.
    """
    try:
        descriptor = os.memfd_create("certificate")
        path = f"/proc/self/fd/{descriptor}"
    except (AttributeError, OSError):
        descriptor, path = tempfile.mkstemp()
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield path
    finally:
        if not path.startswith("/proc/"):
            Path(path).unlink()
