"""The secrets in settings, valid or not, and the settings without them."""

import base64
import os
from pathlib import Path

import pytest

from appliance.errors import SettingsError
from appliance.settings.variables import ORDER_TABLE, TABLE
from deploy.support.masking import Masking
from deploy.support.secrets import known_settings, named_like_secrets
from tests.support.settings import REQUIRED, write_settings

CONFIDENTIAL = [each.name for each in (*TABLE, *ORDER_TABLE) if each.confidential]
MARKER = "sEcReT-of-this-test"


@pytest.mark.parametrize("name", CONFIDENTIAL)
def test_each_variable_that_is_declared_as_a_secret_is_one_and_is_not_shown(name: str, tmp_path: Path) -> None:
    known = known_settings(write_settings(tmp_path / "setenv.sh", REQUIRED | {name: MARKER}), {})
    assert MARKER in known.secrets
    assert MARKER not in known.shown
    assert f"{name}='********'  # setenv.sh" in known.shown
    assert MARKER in known_settings(tmp_path / "none.sh", {name: MARKER}).secrets


@pytest.mark.parametrize("name", CONFIDENTIAL)
def test_the_content_of_a_secrets_file_is_a_secret_and_its_path_is_shown(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{MARKER}\n")
    known = known_settings(write_settings(tmp_path / "setenv.sh", {f"{name}_FILE": str(file)}), {})
    assert known.secrets == {MARKER}
    assert str(file) in known.shown


@pytest.mark.parametrize(
    ("name", "value", "secrets", "shown"),
    [
        ("AUDIT_PATH", "s3a://key:sEcReT@bucket/audit", {"sEcReT"}, "'s3a://bucket/audit'"),
        (
            "AUDIT_PATH",
            "s3a://key:sEc/ReT@bucket/audit",
            {"sEc/ReT"},
            "'s3a://bucket/audit'",
        ),
        ("SOURCE_OAUTH_TOKEN_URL", "https://host/t?code=sEc%2FReT&x=", {"sEc%2FReT", "sEc/ReT"}, "'https://host/t'"),
        ("SOURCE_OAUTH_TOKEN_COMMAND", "get --key=sEcReT -v sEcReT2", {"sEcReT", "sEcReT2"}, "'get'"),
        ("SHARED_SECERT", "sEcReT", {"sEcReT"}, "'**** (no variable of this release)'"),
        ("US_EAST_API_SECRET", "sEcReT", {"sEcReT"}, "'********'"),
        ("US_EAST_API_SECERT", "sEcReT", {"sEcReT"}, "'**** (no variable of this release)'"),
        ("LANES", "4", set(), "'4'"),
    ],
)
def test_odd_places_of_secrets_are_known(name: str, value: str, secrets: set[str], shown: str, tmp_path: Path) -> None:
    order = {"GLOBAL_CLUSTERS": "us-east@10.1.0.4,grape@10.2.0.4", "GLOBAL_CLUSTER": "grape"}
    known = known_settings(write_settings(tmp_path / "setenv.sh", order | {name: value}), {})
    assert known.secrets == secrets
    assert f"{name}={shown}  # setenv.sh" in known.shown


def test_case_1420_each_value_of_a_variable_that_is_set_twice_and_that_of_a_comment_is_a_secret(tmp_path: Path) -> None:
    # Only the last value was known, and a log may have the one before.
    lines = "export SHARED_SECRET='sEcReT-1'", "export SHARED_SECRET='sEcReT-2'", "#export SHARED_SECRET='sEcReT-3'"
    (tmp_path / "setenv.sh").write_text("\n".join(lines))
    known = known_settings(tmp_path / "setenv.sh", {})
    assert known.secrets == {"sEcReT-1", "sEcReT-2", "sEcReT-3"}
    assert "sEcReT" not in known.shown


def test_case_1421_a_password_is_known_where_the_path_of_its_url_has_an_at_sign(tmp_path: Path) -> None:
    # The password was taken together with the path, so that it was left in a log alone.
    urls = "https://key:sEcReT-1@host/a@b,https://key:sEcReT-2@host"
    known = known_settings(write_settings(tmp_path / "setenv.sh", {"SOURCE_OAUTH_TOKEN_URL": urls}), {})
    assert {"sEcReT-1", "sEcReT-2"} <= known.secrets


@pytest.mark.parametrize("secret", ["c0VjUmVU==", "sEc=ReT-1=x"])
@pytest.mark.parametrize("before", ["--key=", "-v ", ""])
def test_case_1424_an_argument_with_equals_signs_in_it_is_a_secret_whole(
    before: str, secret: str, tmp_path: Path
) -> None:
    # Only what follows the last one was taken, which is nothing of base64 with padding.
    settings = write_settings(tmp_path / "setenv.sh", {"SOURCE_OAUTH_TOKEN_COMMAND": f"get {before}{secret}"})
    masked = Masking(known_settings(settings, {}).secrets).masked(f"cannot run get {before}{secret}".encode())
    assert masked == f"cannot run get {before}****".encode()


def test_a_private_key_is_a_secret_whatever_variable_names_its_file(tmp_path: Path) -> None:
    file = tmp_path / "both.pem"
    file.write_text("-----BEGIN PRIVATE KEY-----\nsEcReT\n-----END PRIVATE KEY-----\n")
    settings = write_settings(tmp_path / "setenv.sh", {"SOURCE_SSL_CERTIFICATE_FILE": str(file)})
    assert known_settings(settings, {}).secrets == {file.read_text().strip()}


@pytest.mark.parametrize("line", [f"export SHARED_SECRET=$({MARKER})", f"SHARED_SECRET '{MARKER}'", f"x {MARKER}"])
def test_a_line_with_a_fault_is_named_and_nothing_of_it_is_shown(line: str, tmp_path: Path) -> None:
    (tmp_path / "setenv.sh").write_text(f"export LANES='2'\n{line}\n")
    known = known_settings(tmp_path / "setenv.sh", {})
    assert "# line 2: " in known.shown
    assert MARKER not in known.shown
    assert "LANES='2'" in known.shown


def test_the_secrets_of_containers_that_have_older_settings_are_known(tmp_path: Path) -> None:
    (tmp_path / "prepared").mkdir()
    write_settings(tmp_path / "prepared" / "gateway.sh", {"SHARED_SECRET": "sEcReT-before"})
    settings = write_settings(tmp_path / "setenv.sh", {"SHARED_SECRET": "sEcReT-now"})
    assert known_settings(settings, {}).secrets == {"sEcReT-before", "sEcReT-now"}


def test_case_1427_the_values_of_the_users_lines_in_env_are_secrets_since_compose_prints_a_faulty_one(
    tmp_path: Path,
) -> None:
    # Compose names the line, and what is below it; nobody knew these values.
    ours = "COMPOSE_FILE=docker-compose.yml:prepared/docker-compose.yml\nAPPLIANCE_NETWORK=kafka-orange-grape\n"
    users = "A='sEcReT-1'\nexport B = sEcReT-2 # mine\r\n#C=sEcReT-3\nD E=\"sEcReT-4\"\nF=yes\n"
    (tmp_path / ".env").write_text(ours + users)
    settings = write_settings(tmp_path / "setenv.sh", {})
    said = Masking(known_settings(settings, {}).secrets).masked(f"failed to read .env near {ours}{users}".encode())
    assert b"sEcReT" not in said
    assert ours.encode() in said
    assert b"F=yes" in said


def test_variables_of_other_programs_are_not_shown_and_secrets_by_their_names() -> None:
    environment = {"AWS_SECRET_ACCESS_KEY": "sEcReT", "AWS_SESSION_TOKEN": "sEcReT2", "HOME": "/root", "TOKEN": "yes"}
    known = known_settings(Path("/none/setenv.sh"), environment)
    assert known.secrets == named_like_secrets(environment) == {"sEcReT", "sEcReT2"}
    assert known.shown.strip() == ""
    assert known.unread == ("/none/setenv.sh: no such file",)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    settings = write_settings(tmp_path / "setenv.sh", {"TUNNEL_KEY_FILE": "/none/key.pem"})
    assert known_settings(settings, {}).unread == ("/none/key.pem: no such file",)


def test_a_file_that_this_user_may_not_read_ends_the_command_since_nobody_could_mask_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    settings = write_settings(tmp_path / "setenv.sh", {"SHARED_SECRET": MARKER})
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(SettingsError, match=r"setenv\.sh: permission denied: what it holds could not be masked"):
        known_settings(settings, {})


def test_a_secret_that_is_no_text_is_masked_too() -> None:
    secret = os.fsdecode(b"sEcReT-\xff-of-bytes")
    known = known_settings(Path("/none/setenv.sh"), {"SOURCE_API_SECRET": secret})
    text = b"a \xff " + os.fsencode(secret) + b" " + base64.b64encode(os.fsencode(secret)) + known.shown.encode()
    assert b"-of-bytes" not in (masked := Masking(known.secrets).masked(text))
    assert base64.b64encode(os.fsencode(secret)) not in masked


def test_neither_the_secrets_nor_the_values_are_in_the_text_of_what_is_known(tmp_path: Path) -> None:
    settings = write_settings(tmp_path / "setenv.sh", {"SHARED_SECRET": MARKER})
    assert MARKER not in repr(known_settings(settings, {}))
