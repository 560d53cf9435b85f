"""An operator's own authority, which signs certificates of all kinds: valid ones, and ones with a single fault."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.settings.values import CertificateFiles, Side
from appliance.tls.certificates import Credentials, peer_name
from tests.support.tunnel import LINK

DAY = datetime.timedelta(days=1)
USAGE = {Side.SOURCE: ExtendedKeyUsageOID.SERVER_AUTH, Side.DESTINATION: ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True)
class Leaf:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """An authority that signs with ``key``, as ``name``."""

    def __init__(self, name: str = LINK, key: ec.EllipticCurvePrivateKey | None = None) -> None:
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        public = self.key.public_key()
        self.pem = (
            self._builder(self._name, public, datetime.datetime.now(datetime.UTC) - DAY, 30 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self.key, hashes.SHA256())
            .public_bytes(Encoding.PEM)
        )

    def leaf(
        self,
        side: Side,
        uri: str | None = None,
        usage: Side | None = None,
        begins: datetime.timedelta = -DAY,
        lasts: datetime.timedelta = 2 * DAY,
        fully_named: bool = True,
    ) -> Leaf:
        """A certificate for one end of the link, valid unless changed; ``begins`` is relative to now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaf")])
        names: list[x509.GeneralName] = [x509.DNSName("tunnel.example")]
        if fully_named:
            names.append(x509.UniformResourceIdentifier(uri or peer_name(LINK, side)))
        certificate = (
            self._builder(subject, key.public_key(), datetime.datetime.now(datetime.UTC) + begins, lasts)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([USAGE[usage or side]]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Leaf(certificate.public_bytes(Encoding.PEM), pem)

    def credentials(self, leaf: Leaf) -> Credentials:
        """The credentials of an end with ``leaf``, which trusts this authority."""
        return Credentials(self.pem, leaf.key + leaf.certificate)

    def _builder(
        self,
        subject: x509.Name,
        public: ec.EllipticCurvePublicKey,
        begins: datetime.datetime,
        lasts: datetime.timedelta,
    ) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder(
            subject_name=subject,
            issuer_name=self._name,
            public_key=public,
            serial_number=x509.random_serial_number(),
            not_valid_before=begins,
            not_valid_after=begins + lasts,
        )
        return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)


def _usage(*, signs: bool) -> x509.KeyUsage:
    others = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, **others)


def write_files(directory: Path, authorities: bytes, leaf: Leaf) -> CertificateFiles:
    """The three files of one end, each replaced at once."""
    files = CertificateFiles(directory / "authority.pem", directory / "certificate.pem", directory / "key.pem")
    for path, content in ((files.authority, authorities), (files.key, leaf.key), (files.certificate, leaf.certificate)):
        replace(path, content)
    return files


def page_files(directory: Path, authority: Authority | None = None) -> dict[str, str]:
    """Settings of a page with a new certificate, whose name is tunnel.example; the files are replaced at once."""
    files = write_files(directory, b"", (authority or Authority()).leaf(Side.SOURCE))
    return {"CONSOLE_TLS_CERTIFICATE_FILE": str(files.certificate), "CONSOLE_TLS_KEY_FILE": str(files.key)}


def replace(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file beside it, and move it there."""
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    new.touch(mode=mode)
    new.write_bytes(content)
    new.replace(path)
