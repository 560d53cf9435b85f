"""The link's certificates, made from the shared secret.

Both VMs know SHARED_SECRET and the link's name, so both can make the link's certificate authority without copying a
file:

    scalar = 1 + subkey(link key, "certificate authority", 48 bytes) mod (order - 1)     (see ``kdf``)

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
from dataclasses import dataclass
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.settings.values import Side
from appliance.tls.kdf import subkey

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_FIRST_DAY = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_LAST_DAY = datetime.datetime(2099, 12, 31, tzinfo=datetime.UTC)
_COMMON_NAME_MAX = 64
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
