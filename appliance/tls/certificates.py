"""The link's key and certificates: made from the shared secret, or the certificates read from files.

Both VMs know SHARED_SECRET and the link's name, so both can make the link's key and certificate authority without
copying a file. The key is derived once for each process, in 128 MiB and about half a second:

    link key = scrypt(SHARED_SECRET, salt, n=2**17, r=8, p=1), 32 bytes                     (RFC 7914)
    salt     = "replicator-link" | for each of the two cluster ids: length u16 | id
    subkey   = HKDF-Expand(link key, purpose), with SHA-256                                 (RFC 5869, section 2.3)
    scalar   = 1 + subkey(link key, "certificate authority", 48 bytes) mod (order - 1)

The ids' lengths are part of the salt: without them ``a-b`` with ``c`` and ``a`` with ``b-c`` would have the same key.

The scalar is the CA's private key on NIST P-256; taking 128 bits more than the order has leaves no measurable bias
(FIPS 186-5, A.2.1). Each process then signs a leaf for itself: a fresh key that exists only in its memory, with its
role and the link in the SAN as ``replicator-link://<link>/<role>``, good only for a TLS server (source) or only for a
TLS client (destination).

Both are valid between fixed, distant days. An expiry would protect nothing, because a holder of the secret can sign
another certificate. A start taken from a momentarily wrong clock would break the link until a restart. The first flight
proves that an end is present now. Revoking means changing the secret.

Only a peer that knows the secret sees a certificate (``first_flight``). An attacker can test guesses of the secret
offline against a recorded ClientHello, so its derivation is memory-hard, and a weak secret is refused.
"""

import datetime
import functools
from dataclasses import dataclass
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.errors import SettingsError
from appliance.settings import pem_files
from appliance.settings.secret import Secret
from appliance.settings.values import CertificateFiles, Side

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_FIRST_DAY = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_LAST_DAY = datetime.datetime(2099, 12, 31, tzinfo=datetime.UTC)
_COMMON_NAME_MAX = 64
_KEY_SIZE = 32
_EXTENDED_KEY_USAGE = {
    Side.SOURCE: ExtendedKeyUsageOID.SERVER_AUTH,
    Side.DESTINATION: ExtendedKeyUsageOID.CLIENT_AUTH,
}


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """TLS credentials in PEM: the trusted authority, and the own certificate behind its private key."""

    authority: bytes
    key_and_certificate: bytes


def authority_key(key: bytes) -> ec.EllipticCurvePrivateKey:
    """The private key of the link's certificate authority, from the link's key: the same on both VMs, see above."""
    derived = int.from_bytes(subkey(key, "certificate authority", 48), "big")
    return ec.derive_private_key(1 + derived % (_P256_ORDER - 1), ec.SECP256R1())


def peer_name(link: str, role: Side) -> str:
    """The URI of an end in its certificate."""
    return f"replicator-link://{quote(link, safe='')}/{role}"


def make_credentials(key: bytes, link: str, role: Side) -> Credentials:
    """Fresh credentials for one end of the link, from its key."""
    authority = authority_key(key)
    leaf = ec.generate_private_key(ec.SECP256R1())
    certificate = _leaf_certificate(leaf.public_key(), authority, link, role)
    key = leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Credentials(
        authority=_authority_certificate(authority, link).public_bytes(Encoding.PEM),
        key_and_certificate=key + certificate.public_bytes(Encoding.PEM),
    )


def days_left(certificate: x509.Certificate, now: datetime.datetime) -> float:
    """Days until it is no longer valid; negative: since."""
    return (certificate.not_valid_after_utc - now) / datetime.timedelta(days=1)


def names_in(certificate: bytes) -> list[str]:
    """The URIs in the SAN of a certificate in DER; none when there is no telling."""
    try:
        return uris_of(x509.load_der_x509_certificate(certificate))
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return []


def uris_of(certificate: x509.Certificate) -> list[str]:
    """The same for a certificate that has been read.

    Raises:
        ValueError: its extensions make no sense.
    """
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [*names.get_values_for_type(x509.UniformResourceIdentifier)]


def _authority_certificate(authority: ec.EllipticCurvePrivateKey, link: str) -> x509.Certificate:
    public = authority.public_key()
    return (
        _dated(_name(link), _name(link), public)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(authority, hashes.SHA256())
    )


def _leaf_certificate(
    public: ec.EllipticCurvePublicKey, authority: ec.EllipticCurvePrivateKey, link: str, role: Side
) -> x509.Certificate:
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    return (
        _dated(_name(role), _name(link), public)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_EXTENDED_KEY_USAGE[role]]), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(peer_name(link, role))]), False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority, hashes.SHA256())
    )


def _dated(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer,
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=_FIRST_DAY,
        not_valid_after=_LAST_DAY,
    )


def _name(text: str) -> x509.Name:
    """A distinguished name; cut where X.520 ends a common name, nothing depends on it."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_COMMON_NAME_MAX])])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def read_credentials(files: CertificateFiles, link: str, role: Side) -> Credentials:
    """The credentials in ``files`` for one end of the link, as an authority of the operator's has signed them.

    Checked is what the other end would refuse, or only this VM can see: that the key is private and belongs to the
    certificate, that the certificate is valid now, and that its SAN holds exactly one URI, ``peer_name``. Whether an
    authority has signed the other end's certificate, TLS decides; with the old and the new one in the file, an
    authority can be changed while connections come and go.
    """
    certificate, key = ("TUNNEL_CERTIFICATE_FILE", files.certificate), ("TUNNEL_KEY_FILE", files.key)
    try:
        authority = pem_files.read_authorities("TUNNEL_AUTHORITY_FILE", files.authority)
        pair = pem_files.read_pair(certificate, key)
    except ValueError as error:
        raise SettingsError([str(error)]) from error
    names, name = uris_of(pem_files.certificates(pair)[0]), peer_name(link, role)
    if names != [name]:
        expected = f"expected the URI {name}, and no other one, as subject alternative name"
        raise SettingsError([f"{'='.join(map(str, certificate))}: {expected}, it has {', '.join(names) or 'none'}"])
    return Credentials(authority, pair)


def signature_of(files: CertificateFiles) -> pem_files.Signature:
    """A value that changes when one of ``files`` is written or replaced."""
    return pem_files.signature_of((files.authority, files.certificate, files.key))


@functools.lru_cache(maxsize=4)
def link_key(secret: Secret, source_id: str, destination_id: str) -> bytes:
    """The key of the link between two clusters; the same on both VMs."""
    ids = (each.encode() for each in (source_id, destination_id))
    salt = b"replicator-link" + b"".join(len(each).to_bytes(2, "big") + each for each in ids)
    return Scrypt(salt=salt, length=_KEY_SIZE, n=2**17, r=8, p=1).derive(secret.reveal().encode())


def subkey(key: bytes, purpose: str, size: int = _KEY_SIZE) -> bytes:
    """``size`` bytes for one purpose, independent of ``key`` and of other purposes' bytes."""
    return HKDFExpand(algorithm=hashes.SHA256(), length=size, info=purpose.encode()).derive(key)
