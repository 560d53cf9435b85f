"""An end's certificate from files, as an authority of the operator's has signed it.

These are checked, because the other end would refuse them or only this VM can see them: that the key is private and
belongs to the certificate, that the certificate is valid now, and that its SAN holds exactly one URI, this end's name
in this link (``certificates.peer_name``). Whether the other end's certificate is signed by one of the authorities, TLS
decides; with the old and the new one in the file, an authority can be changed while connections come and go.
"""

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from appliance.errors import SettingsError
from appliance.settings.values import CertificateFiles, Side
from appliance.tls.certificates import Credentials, peer_name, uris_of

_OTHERS = 0o007

_Signature = tuple[tuple[int, int, int, int] | None, ...]


def read_credentials(files: CertificateFiles, link: str, role: Side) -> Credentials:
    """The credentials in ``files`` for one end of the link.

    Raises:
        SettingsError: they cannot be used; the text names the variable whose file it is.
    """
    authority, key = _read("AUTHORITY", files.authority), _read("KEY", files.key)
    chain = _read("CERTIFICATE", files.certificate)
    _certificates("AUTHORITY", files.authority, authority)
    leaf = _certificates("CERTIFICATE", files.certificate, chain)[0]
    _check_key(files, key, leaf)
    _check_time(files.certificate, leaf)
    _check_name(files.certificate, leaf, peer_name(link, role))
    return Credentials(authority, key + b"\n" + chain)


def signature_of(files: CertificateFiles) -> _Signature:
    """A value that changes when one of ``files`` is written or replaced."""
    return tuple(_state(path) for path in (files.authority, files.certificate, files.key))


def _state(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _fault(kind: str, path: Path, expected: str) -> SettingsError:
    return SettingsError([f"TUNNEL_{kind}_FILE={path}: expected {expected}"])


def _read(kind: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            if kind == "KEY" and os.fstat(file.fileno()).st_mode & _OTHERS:
                raise _fault(kind, path, f"a key that no other user can read: chmod o= {path}")
            return file.read()
    except OSError as error:
        raise _fault(kind, path, f"a readable PEM file: {error.strerror}") from error


def _certificates(kind: str, path: Path, content: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise _fault(kind, path, "certificates in PEM") from error


def _check_key(files: CertificateFiles, content: bytes, leaf: x509.Certificate) -> None:
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError as error:
        raise _fault("KEY", files.key, "a key without a passphrase") from error
    except ValueError as error:
        raise _fault("KEY", files.key, "a private key in PEM") from error
    spki = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*spki) != leaf.public_key().public_bytes(*spki):
        raise _fault("KEY", files.key, f"the key of the certificate in TUNNEL_CERTIFICATE_FILE={files.certificate}")


def _check_time(path: Path, leaf: x509.Certificate) -> None:
    first, last = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    if not first <= datetime.datetime.now(datetime.UTC) <= last:
        raise _fault("CERTIFICATE", path, f"a certificate that is valid now, this one is from {first} to {last}")


def _check_name(path: Path, leaf: x509.Certificate, name: str) -> None:
    found = uris_of(leaf)
    if found != [name]:
        expected = f"the URI {name}, and no other one, as subject alternative name"
        raise _fault("CERTIFICATE", path, f"{expected}, it has {', '.join(found) or 'none'}")
