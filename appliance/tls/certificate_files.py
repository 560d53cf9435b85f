"""An end's certificate from files, as an authority of the operator's has signed it.

These are checked, because the other end would refuse them or only this VM can see them: that the key is private and
belongs to the certificate, that the certificate is valid now, and that its SAN holds exactly one URI, this end's name
in this link (``certificates.peer_name``). Whether the other end's certificate is signed by one of the authorities, TLS
decides; with the old and the new one in the file, an authority can be changed while connections come and go.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cryptography import x509

from appliance.errors import SettingsError
from appliance.settings import pem_files
from appliance.settings.values import CertificateFiles, Side
from appliance.tls.certificates import Credentials, peer_name, uris_of

_Value = TypeVar("_Value")


def read_credentials(files: CertificateFiles, link: str, role: Side) -> Credentials:
    """The credentials in ``files`` for one end of the link.

    Raises:
        SettingsError: they cannot be used; the text names the variable whose file it is.
    """
    authority = _checked("AUTHORITY", files.authority, lambda: pem_files.read_pem(files.authority))
    content = _checked("KEY", files.key, lambda: pem_files.read_private_pem(files.key))
    chain = _checked("CERTIFICATE", files.certificate, lambda: pem_files.read_pem(files.certificate))
    _checked("AUTHORITY", files.authority, lambda: pem_files.certificates(authority))
    leaf = _checked("CERTIFICATE", files.certificate, lambda: pem_files.certificates(chain))[0]
    key = _checked("KEY", files.key, lambda: pem_files.private_key(content))
    if not pem_files.is_pair(key, leaf):
        raise _fault("KEY", files.key, f"the key of the certificate in TUNNEL_CERTIFICATE_FILE={files.certificate}")
    _checked("CERTIFICATE", files.certificate, lambda: pem_files.check_time(leaf))
    _check_name(files.certificate, leaf, peer_name(link, role))
    return Credentials(authority, content + b"\n" + chain)


def signature_of(files: CertificateFiles) -> pem_files.Signature:
    """A value that changes when one of ``files`` is written or replaced."""
    return pem_files.signature_of((files.authority, files.certificate, files.key))


def _fault(kind: str, path: Path, expected: str) -> SettingsError:
    return SettingsError([f"TUNNEL_{kind}_FILE={path}: expected {expected}"])


def _checked(kind: str, path: Path, check: Callable[[], _Value]) -> _Value:
    try:
        return check()
    except ValueError as error:
        raise SettingsError([f"TUNNEL_{kind}_FILE={path}: {error}"]) from error


def _check_name(path: Path, leaf: x509.Certificate, name: str) -> None:
    found = uris_of(leaf)
    if found != [name]:
        expected = f"the URI {name}, and no other one, as subject alternative name"
        raise _fault("CERTIFICATE", path, f"{expected}, it has {', '.join(found) or 'none'}")
