import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from appliance.errors import IdentityRefused, SettingsError
from appliance.settings.values import Side
from appliance.tls.certificates import Credentials, read_credentials
from appliance.tls.identity import Identity, tls_context
from tests.support.authority import Authority, replace, write_files
from tests.support.tunnel import LINK, tunnel_settings

AUTHORITY = Authority()
GOOD = AUTHORITY.leaf(Side.SOURCE)


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path, AUTHORITY.pem, GOOD)


def refusal(files, side=Side.SOURCE):
    with pytest.raises(SettingsError) as error:
        read_credentials(files, LINK, side)
    (line,) = error.value.faults
    return line


def test_good_files_make_an_identity_that_demands_the_opposite_role(files):
    end = Identity.of(tunnel_settings(files=files), Side.SOURCE)
    assert end.tls.context.protocol == ssl.PROTOCOL_TLS_SERVER
    end.check(der(AUTHORITY.leaf(Side.DESTINATION)))
    with pytest.raises(IdentityRefused):
        end.check(der(AUTHORITY.leaf(Side.SOURCE)))


def der(leaf):
    return x509.load_pem_x509_certificate(leaf.certificate).public_bytes(Encoding.DER)


def test_the_line_for_a_wrong_name_says_which_one_is_expected(files):
    assert refusal(files, Side.DESTINATION) == (
        f"TUNNEL_CERTIFICATE_FILE={files.certificate}: expected the URI replicator-link://orange-grape/destination, "
        "and no other one, as subject alternative name, it has replicator-link://orange-grape/source"
    )


def test_a_certificate_without_a_name_is_refused(files):
    nameless = write_files(files.key.parent, AUTHORITY.pem, AUTHORITY.leaf(Side.SOURCE, fully_named=False))
    assert "replicator-link://orange-grape/source" in refusal(nameless)


def test_a_key_for_a_group_is_good_since_kubernetes_gives_it_so(files):
    files.key.chmod(0o640)
    assert read_credentials(files, LINK, Side.SOURCE)


def test_a_key_behind_a_passphrase_is_refused(files):
    key = load_pem_private_key(GOOD.key, None)
    replace(files.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open sesame")))
    assert refusal(files) == f"TUNNEL_KEY_FILE={files.key}: expected a key without a passphrase"


@pytest.mark.parametrize(
    ("variable", "file", "expected"),
    [
        ("TUNNEL_AUTHORITY_FILE", "authority", "certificates in PEM"),
        ("TUNNEL_CERTIFICATE_FILE", "certificate", "certificates in PEM"),
        ("TUNNEL_KEY_FILE", "key", "a private key in PEM"),
    ],
)
def test_a_file_that_is_absent_or_no_pem_names_its_variable(files, variable, file, expected):
    path = getattr(files, file)
    replace(path, b"hello")
    assert refusal(files) == f"{variable}={path}: expected {expected}"
    path.unlink()
    assert refusal(files) == f"{variable}={path}: expected a readable PEM file: No such file or directory"


def test_credentials_that_openssl_refuses_are_a_clear_line_too():
    weak = rsa.generate_private_key(65537, 1024)
    pem = weak.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(SettingsError, match="TUNNEL_AUTHORITY_FILE, TUNNEL_CERTIFICATE_FILE: not fit for TLS"):
        tls_context(Credentials(AUTHORITY.pem, pem + GOOD.certificate), ssl.PROTOCOL_TLS_SERVER)


def test_the_chain_behind_the_leaf_is_shown_too(files):
    replace(files.certificate, GOOD.certificate + Authority().pem)
    credentials = read_credentials(files, LINK, Side.SOURCE)
    assert credentials.key_and_certificate.count(b"BEGIN CERTIFICATE") == 2


def test_credentials_do_not_show_themselves(files):
    credentials = read_credentials(files, LINK, Side.SOURCE)
    assert "PRIVATE" not in repr(credentials)
