import datetime
import ssl
import tempfile

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.errors import IdentityRefused
from appliance.settings.values import Side
from appliance.tls.certificates import authority_key, make_credentials, names_in, peer_name
from appliance.tls.identity import tls_context
from tests.support.tls import identity, key_of
from tests.support.tunnel import IDS, LINK, SECRET

OTHER_SECRET = "another-9fTz2kLq8wXe4vBn6mRc1yUa"


def leaf_of(side, link=LINK):
    pem = make_credentials(key_of(), link, side).key_and_certificate
    return x509.load_pem_x509_certificate(pem)


def der(certificate):
    return certificate.public_bytes(Encoding.DER)


def scalar(*link):
    return authority_key(key_of(*link)).private_numbers().private_value


def test_both_vms_derive_the_same_authority_and_every_version_will():
    assert scalar(SECRET, IDS) == 0xF51A563E417E3C261522F2D4B4CCA9F26A3A78CAD5DAACC671AC13D8A0B34AC1


@pytest.mark.parametrize(
    "link",
    [
        (OTHER_SECRET, IDS),
        (SECRET, ("orange", "melon")),
        (SECRET, ("orange-grape", "")),
        (SECRET, ("", "orange-grape")),
    ],
)
def test_another_secret_or_link_has_another_authority_also_where_the_ids_join_to_the_same_name(link):
    assert scalar(*link) != scalar(SECRET, IDS)


@pytest.mark.parametrize(
    ("side", "usage"),
    [(Side.SOURCE, ExtendedKeyUsageOID.SERVER_AUTH), (Side.DESTINATION, ExtendedKeyUsageOID.CLIENT_AUTH)],
)
def test_a_leaf_is_good_for_its_role_only(side, usage):
    extensions = leaf_of(side).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [usage]
    assert [name.value for name in names] == [f"replicator-link://orange-grape/{side.value}"]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_the_days_of_the_peers_certificate_are_known_from_the_first_one_that_is_accepted():
    source = identity.__wrapped__(Side.SOURCE)
    assert source.peer_days_left() is None
    with pytest.raises(IdentityRefused):
        source.check(der(leaf_of(Side.SOURCE)))
    assert source.peer_days_left() is None
    leaf = leaf_of(Side.DESTINATION)
    source.check(der(leaf))
    left = leaf.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    assert source.peer_days_left() == pytest.approx(left / datetime.timedelta(days=1), abs=0.01)


def test_case_25_a_leaf_does_not_depend_on_the_clock_with_which_its_process_started():
    """Before, a clock that was an hour ahead until NTP corrected it broke the link until a restart of the process."""
    leaf = leaf_of(Side.SOURCE)
    assert leaf.not_valid_before_utc == datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    assert leaf.not_valid_after_utc == datetime.datetime(2099, 12, 31, tzinfo=datetime.UTC)


@pytest.mark.parametrize("names", [b"\x30\x04\xa5\x02\xa1\x00", b"\x30\x02\xa3\x00", b"\x30\x01", b""])
def test_a_certificate_with_names_of_unheard_of_kinds_has_none(names):
    key = ec.generate_private_key(ec.SECP256R1())
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    extension = x509.UnrecognizedExtension(x509.ExtensionOID.SUBJECT_ALTERNATIVE_NAME, names)
    certificate = (
        x509.CertificateBuilder(x509.Name([]), x509.Name([]), key.public_key(), 1, day, day)
        .add_extension(extension, critical=False)
        .sign(key, hashes.SHA256())
    )
    assert names_in(der(certificate)) == []


def test_each_process_has_a_key_of_its_own():
    assert leaf_of(Side.SOURCE).public_key() != leaf_of(Side.SOURCE).public_key()


def test_a_link_of_any_name_can_have_certificates():
    assert peer_name("a/b c", Side.SOURCE) == "replicator-link://a%2Fb%20c/source"
    assert leaf_of(Side.SOURCE, link="x" * 201).issuer


@pytest.mark.parametrize("side", Side)
def test_the_opposite_role_of_the_same_link_is_accepted(side):
    opposite = Side.SOURCE if side is Side.DESTINATION else Side.DESTINATION
    identity(side).check(der(leaf_of(opposite)))


@pytest.mark.parametrize(
    "certificate",
    [der(leaf_of(Side.SOURCE)), der(leaf_of(Side.DESTINATION, "orange-melon")), None, b"", b"no certificate"],
    ids=["same role", "another link", "none", "empty", "garbage"],
)
def test_any_other_target_is_refused(certificate):
    with pytest.raises(IdentityRefused, match="instead of replicator-link://orange-grape/destination"):
        identity(Side.SOURCE).check(certificate)


@pytest.mark.parametrize("side", Side)
def test_tls_is_1_3_with_a_certificate_demanded_and_nothing_resumed(side):
    context = identity(side).tls.context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert side is Side.DESTINATION or context.num_tickets == 0


def test_without_files_in_memory_the_key_passes_through_a_private_file_that_is_removed(monkeypatch, tmp_path):
    modes = []
    monkeypatch.delattr("os.memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    load = ssl.SSLContext.load_cert_chain

    def spy(context, path):
        modes.extend(file.stat().st_mode & 0o777 for file in tmp_path.iterdir())
        load(context, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    tls_context(make_credentials(key_of(), LINK, Side.SOURCE), ssl.PROTOCOL_TLS_SERVER)
    assert modes == [0o600]
    assert list(tmp_path.iterdir()) == []
