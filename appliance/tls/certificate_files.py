"""An end's certificate from files, as an authority of the operator's has signed it.

These are checked, because the other end would refuse them or only this VM can see them: that the key is private and
belongs to the certificate, that the certificate is valid now, and that its SAN holds exactly one URI, this end's name
in this link (``certificates.peer_name``). Whether the other end's certificate is signed by one of the authorities, TLS
decides; with the old and the new one in the file, an authority can be changed while connections come and go.
"""

from appliance.errors import SettingsError
from appliance.settings import pem_files
from appliance.settings.values import CertificateFiles, Side
from appliance.tls.certificates import Credentials, peer_name, uris_of


def read_credentials(files: CertificateFiles, link: str, role: Side) -> Credentials:
    """The credentials in ``files`` for one end of the link.

    Raises:
        SettingsError: they cannot be used; the text names the variable whose file it is.
    """
    certificate, key = ("TUNNEL_CERTIFICATE_FILE", files.certificate), ("TUNNEL_KEY_FILE", files.key)
    try:
        authority = pem_files.read_authorities("TUNNEL_AUTHORITY_FILE", files.authority)
        pair = pem_files.read_pair(certificate, key)
    except ValueError as error:
        raise SettingsError([str(error)]) from error
    found, name = uris_of(pem_files.certificates(pair)[0]), peer_name(link, role)
    if found != [name]:
        expected = f"expected the URI {name}, and no other one, as subject alternative name"
        raise SettingsError([f"{'='.join(map(str, certificate))}: {expected}, it has {', '.join(found) or 'none'}"])
    return Credentials(authority, pair)


def signature_of(files: CertificateFiles) -> pem_files.Signature:
    """A value that changes when one of ``files`` is written or replaced."""
    return pem_files.signature_of((files.authority, files.certificate, files.key))
