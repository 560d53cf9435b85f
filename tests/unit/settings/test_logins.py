"""The settings of logins: what is needed with what, and the files of certificates."""

import datetime
from pathlib import Path

import pytest

from appliance.settings.role import TUNNEL_ENDS
from appliance.settings.values import Side
from tests.support.authority import Authority, Leaf, replace
from tests.support.settings import faults, parsed

NO_KEYS = {"SOURCE_API_KEY": "", "SOURCE_API_SECRET": ""}
BY_TOKEN = {"SOURCE_SASL_MECHANISM": "OAUTHBEARER"}
URL = "https://idp.example/oauth2/token"
IAM = {**NO_KEYS, "SOURCE_SASL_MECHANISM": "AWS_MSK_IAM"}
DAY = datetime.timedelta(days=1)


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    """The settings of a source with a certificate."""
    write(tmp_path, Authority().leaf(Side.DESTINATION))
    return {
        **NO_KEYS,
        "SOURCE_SECURITY_PROTOCOL": "SSL",
        "SOURCE_SSL_CERTIFICATE_FILE": str(tmp_path / "own.pem"),
        "SOURCE_SSL_KEY_FILE": str(tmp_path / "own.key"),
    }


def write(directory: Path, leaf: Leaf) -> None:
    replace(directory / "own.key", leaf.key)
    replace(directory / "own.pem", leaf.certificate)


def test_a_token_endpoint_needs_the_key_of_its_client_and_a_command_none() -> None:
    source = parsed(
        **BY_TOKEN, SOURCE_OAUTH_TOKEN_URL=URL, SOURCE_OAUTH_EXTENSIONS="logicalCluster=lkc-1, a=b c"
    ).source
    assert (source.oauth.token_url, source.oauth.extensions) == (URL, (("logicalCluster", "lkc-1"), ("a", "b c")))
    missing = faults(**BY_TOKEN, **NO_KEYS, SOURCE_OAUTH_TOKEN_URL=URL)
    assert [fault.partition(":")[0] for fault in missing] == ["SOURCE_API_KEY", "SOURCE_API_SECRET"]
    source = parsed(**BY_TOKEN, **NO_KEYS, SOURCE_OAUTH_TOKEN_COMMAND="cat '/run/my token'").source
    assert (source.oauth.command, source.login) == (("cat", "/run/my token"), "SOURCE_OAUTH_TOKEN_COMMAND")


@pytest.mark.parametrize("both", [{}, {"SOURCE_OAUTH_TOKEN_URL": URL, "SOURCE_OAUTH_TOKEN_COMMAND": "cat"}])
def test_tokens_come_from_one_place(both: dict[str, str]) -> None:
    (fault,) = faults(**BY_TOKEN, **both)
    assert fault.endswith("expected either SOURCE_OAUTH_TOKEN_URL or SOURCE_OAUTH_TOKEN_COMMAND with it")


@pytest.mark.parametrize(
    ("name", "expected", "values"),
    [
        ("TOKEN_URL", "an address that begins with https://", ["http://idp.example/token", "idp.example", "https://"]),
        ("EXTENSIONS", "name=value, comma separated, with letters", ["a", "a=", "auth=x", "a1=x", "=x"]),
        ("TOKEN_COMMAND", "a program and its arguments, with matching quotes", ["print 'it"]),
    ],
)
def test_a_value_of_oauth_has_its_form(name: str, expected: str, values: list[str]) -> None:
    for value in values:
        (fault,) = faults(**{f"SOURCE_OAUTH_{name}": value})
        assert fault.startswith(f"SOURCE_OAUTH_{name}={value.split()[0]}: expected {expected}")


@pytest.mark.parametrize(
    ("broker", "region"),
    [
        ("b-1.orders.abc123.c2.kafka.us-east-1.amazonaws.com:9098", "us-east-1"),
        ("boot-abc.c1.kafka-serverless.eu-central-1.amazonaws.com:9098", "eu-central-1"),
        ("b-1.orders.abc123.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
    ],
)
def test_the_region_is_in_the_names_of_msks_brokers(broker: str, region: str) -> None:
    assert parsed(**IAM, SOURCE_BROKER_SERVERS=broker).source.region == region
    assert parsed(**IAM, SOURCE_BROKER_SERVERS=broker, SOURCE_AWS_REGION="eu-west-3").source.region == "eu-west-3"


def test_iam_needs_a_region_and_both_of_a_key_and_its_secret_or_neither() -> None:
    assert faults(**IAM) == (
        "SOURCE_SASL_MECHANISM=AWS_MSK_IAM: expected SOURCE_AWS_REGION with it: no broker's name has a region",
    )
    (fault,) = faults(**IAM | {"SOURCE_AWS_REGION": "eu-west-1", "SOURCE_API_KEY": "AKIA"})
    assert "expected both of SOURCE_API_KEY and SOURCE_API_SECRET, or neither" in fault


def test_a_certificate_needs_no_key_of_sasl(own: dict[str, str]) -> None:
    source = parsed(**own).source
    assert source.login == f"SOURCE_SSL_CERTIFICATE_FILE={own['SOURCE_SSL_CERTIFICATE_FILE']}"
    both = own | {"SOURCE_SECURITY_PROTOCOL": "SASL_SSL", "SOURCE_API_KEY": "key", "SOURCE_API_SECRET": "secret"}
    assert parsed(**both).source.login == "SOURCE_API_KEY=key"


def test_a_certificate_and_its_key_go_together_and_with_tls(own: dict[str, str]) -> None:
    assert faults(**own | {"SOURCE_SSL_KEY_FILE": ""}) == (
        "SOURCE_SSL_CERTIFICATE_FILE and SOURCE_SSL_KEY_FILE: expected both files, or neither",
    )
    (fault,) = faults(**own | {"SOURCE_SECURITY_PROTOCOL": "PLAINTEXT"})
    assert fault.endswith("expected SOURCE_SECURITY_PROTOCOL SSL or SASL_SSL with it, not PLAINTEXT")


def test_files_that_cannot_be_used_name_their_variable(own: dict[str, str], tmp_path: Path) -> None:
    key, other = tmp_path / "own.key", Authority().leaf(Side.DESTINATION)
    key.chmod(0o644)
    (fault,) = faults(**own)
    assert fault.startswith(f"SOURCE_SSL_KEY_FILE={key}: expected a file that others cannot read: chmod o= {key}")
    replace(key, other.key)
    assert faults(**own) == (
        f"SOURCE_SSL_KEY_FILE={key}: expected the key of SOURCE_SSL_CERTIFICATE_FILE={tmp_path / 'own.pem'}",
    )
    replace(key, b"no key")
    assert faults(**own) == (f"SOURCE_SSL_KEY_FILE={key}: expected a private key in PEM",)
    key.unlink()
    assert faults(**own) == (f"SOURCE_SSL_KEY_FILE={key}: expected a readable PEM file: No such file or directory",)
    parsed(TUNNEL_ENDS, **own)


def test_key_and_certificate_may_be_in_one_file_as_kafka_has_them(own: dict[str, str], tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    replace(both, (tmp_path / "own.key").read_bytes() + (tmp_path / "own.pem").read_bytes())
    parsed(**own | {"SOURCE_SSL_CERTIFICATE_FILE": str(both), "SOURCE_SSL_KEY_FILE": str(both)})


@pytest.mark.parametrize(("begins", "lasts"), [(-2 * DAY, DAY), (DAY, DAY)])
def test_a_certificate_is_valid_now(
    own: dict[str, str], tmp_path: Path, begins: datetime.timedelta, lasts: datetime.timedelta
) -> None:
    write(tmp_path, Authority().leaf(Side.DESTINATION, begins=begins, lasts=lasts))
    (fault,) = faults(**own)
    assert fault.startswith(f"SOURCE_SSL_CERTIFICATE_FILE={tmp_path / 'own.pem'}: expected a certificate that is valid")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SOURCE_OAUTH_TOKEN_URL", "https://me:Hidden1@idp.example/token"),
        ("DESTINATION_OAUTH_TOKEN_URL", "https://Hidden1@idp.example/token"),
        ("AUDIT_PATH", "s3a://AKIA:Hidden1@bucket/folder"),
        ("AUDIT_PATH", "s3a://AKIA:9a/Hidden1@bucket/folder"),
        ("SPARK_EVENT_LOG_DIR", "s3a://AKIA:Hidden1@bucket/folder"),
    ],
)
def test_a_login_in_a_url_is_refused_by_a_line_that_names_the_variable_and_shows_none_of_it(
    name: str, value: str
) -> None:
    (fault,) = [fault for fault in faults(**{name: value}) if name in fault]
    assert fault.startswith(f"{name}=")
    assert fault.endswith(": expected a URL without a user or a password in it")
    assert "Hidden1" not in fault


@pytest.mark.parametrize("path", ["s3a://bucket/a@b", "gs://bucket/folder", "/audit/a@b:c"])
def test_a_url_without_a_login_is_taken(path: str) -> None:
    assert parsed(AUDIT_PATH=path).audit.path == path
