"""The brokers' certificates, checked by an independent verifier."""

import datetime
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from testbed.certificates import CertificateAuthority

FQDN = "b0.orange.vpc.example"
ADDRESS = "127.0.1.1"


def verify(authority: CertificateAuthority, pem: bytes, subject: x509.GeneralName) -> None:
    leaf = x509.load_pem_x509_certificates(pem)[0]
    builder = PolicyBuilder().store(Store([authority.certificate])).time(datetime.datetime.now(datetime.UTC))
    builder.build_server_verifier(subject).verify(leaf, [])


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority.create("orange demo authority")


@pytest.mark.parametrize("subject", [x509.DNSName(FQDN), x509.IPAddress(ipaddress.ip_address(ADDRESS))])
def test_a_broker_is_trusted_under_its_name_and_its_address(authority, subject):
    verify(authority, authority.issue((FQDN, ADDRESS)), subject)


@pytest.mark.parametrize("subject", ["b1.orange.vpc.example", "orange.vpc.example"])
def test_a_broker_is_not_trusted_under_another_name(authority, subject):
    with pytest.raises(VerificationError):
        verify(authority, authority.issue((FQDN, ADDRESS)), x509.DNSName(subject))


def test_a_broker_of_another_authority_is_not_trusted(authority):
    stranger = CertificateAuthority.create("orange demo authority")
    with pytest.raises(VerificationError):
        verify(authority, stranger.issue((FQDN, ADDRESS)), x509.DNSName(FQDN))


def test_a_key_store_holds_the_key_of_its_certificate_and_the_chain(authority):
    pem = authority.issue((FQDN, ADDRESS))
    leaf, issuer = x509.load_pem_x509_certificates(pem)
    key = serialization.load_pem_private_key(pem, password=None)
    assert key.public_key() == leaf.public_key()
    assert issuer == authority.certificate


def test_the_authority_file_for_clients_holds_no_key(authority):
    assert b"PRIVATE KEY" not in authority.certificate_pem
