"""A certificate authority for one cluster, and a certificate for each of its brokers.

Kafka reads them as PEM (KIP-651): a broker's key store is one file with its private key (PKCS #8) and its chain.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=30)
_CLOCK_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    """A key and its self-signed certificate, both in memory. Clients get ``certificate_pem`` only."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, name: str) -> "CertificateAuthority":
        """A new authority called ``name``."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _common_name(name)
        builder = (
            _unsigned(subject, subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @property
    def certificate_pem(self) -> bytes:
        """The certificate that clients trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, hosts: tuple[str, ...]) -> bytes:
        """A new key and its chain, in PEM, valid for ``hosts``: names and IP addresses, of which the first is the
        subject."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._issue(_common_name(hosts[0]), ExtendedKeyUsageOID.SERVER_AUTH, [names])

    def issue_client(self, user: str, group: str = "") -> bytes:
        """A new key and its chain, in PEM, for a client: Kubernetes takes the subject for its user and group."""
        groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
        subject = x509.Name([*groups, *_common_name(user)])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, more: Sequence[x509.ExtensionType] = ()
    ) -> bytes:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _unsigned(subject, self.certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        for extension in more:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return private + certificate.public_bytes(serialization.Encoding.PEM) + self.certificate_pem


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
