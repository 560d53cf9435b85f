"""The files of SSH keys and of secrets."""

import base64
import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from appliance.settings.private_files import read_private_key, read_public_keys
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.values import SecretFile
from appliance.settings.variable import Variable
from appliance.settings.variables import TABLE
from tests.support.settings import SECRET, faults, parsed

KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PRIVATE = KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
PUBLIC = KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
OTHER = ec.generate_private_key(ec.SECP256R1())


def with_passphrase() -> bytes:
    """The private key that ssh-keygen writes with a passphrase (OpenSSH's PROTOCOL.key)."""

    def text(value: bytes) -> bytes:
        return struct.pack(">I", len(value)) + value

    public = text(b"ssh-ed25519") + text(KEY.public_key().public_bytes_raw())
    options = text(bytes(16)) + struct.pack(">I", 16)
    key = text(b"aes256-ctr") + text(b"bcrypt") + text(options) + struct.pack(">I", 1) + text(public) + text(bytes(144))
    body = base64.encodebytes(b"openssh-key-v1\0" + key)
    return b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + body + b"-----END OPENSSH PRIVATE KEY-----\n"


def file_with(directory: Path, content: bytes, mode: int = 0o600) -> Path:
    path = directory / "key"
    path.touch(mode=0o600)
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640])
def test_a_private_key_is_read(tmp_path: Path, mode: int) -> None:
    assert read_private_key(file_with(tmp_path, PRIVATE, mode)).private_bytes_raw() == bytes(range(32))


@pytest.mark.parametrize("mode", [0o644, 0o604])
def test_a_private_key_that_others_can_read_is_none(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ValueError, match="expected a file that others cannot read: chmod o="):
        read_private_key(file_with(tmp_path, PRIVATE, mode))


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "no private key in it"),
        (PUBLIC, "no private key in it"),
        (PRIVATE[:100], "no private key in it"),
        (OTHER.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), "a key of another kind"),
        (with_passphrase(), "it has a passphrase"),
    ],
    ids=["empty", "public", "cut off", "another kind", "passphrase"],
)
def test_a_file_without_a_private_key_is_a_fault_with_the_command_that_makes_one(
    tmp_path: Path, content: bytes, cause: str
) -> None:
    with pytest.raises(ValueError, match=rf"ssh-keygen -t ed25519 -N '': {cause}"):
        read_private_key(file_with(tmp_path, content))


def test_public_keys_stand_on_lines_between_comments(tmp_path: Path) -> None:
    text = b"# old and new\n" + PUBLIC + b"\n\n" + PUBLIC + b" root@bastion\n"
    assert [key.public_bytes_raw() for key in read_public_keys(file_with(tmp_path, text, 0o644))] == [
        KEY.public_key().public_bytes_raw()
    ] * 2


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"# nothing\n", "no key in it"),
        (PUBLIC + b"\nbastion.example " + PUBLIC, "a line that is none"),
        (OTHER.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH), "a key of another kind"),
    ],
    ids=["empty", "known_hosts", "another kind"],
)
def test_a_file_without_public_keys_is_a_fault(tmp_path: Path, content: bytes, cause: str) -> None:
    with pytest.raises(ValueError, match=f"expected Ed25519 public keys.*: {cause}"):
        read_public_keys(file_with(tmp_path, content))


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file or directory"):
        read_private_key(tmp_path / "absent")
    with pytest.raises(ValueError, match="Is a directory"):
        read_public_keys(tmp_path)


@pytest.mark.parametrize(
    "variable", [variable for variable in TABLE if variable.confidential], ids=lambda one: one.name
)
def test_every_secret_may_be_in_a_file_of_its_own(tmp_path: Path, variable: Variable[object]) -> None:
    path = file_with(tmp_path, SECRET.encode() + b"\n", 0o440)
    settings = parsed(**{variable.name: "", f"{variable.name}_FILE": f" {path} "})
    assert settings.secret_files == (SecretFile(variable.name, path, Secret(SECRET), variable.roles),)
    with_it = parsed(**{variable.name: SECRET})
    assert replace(settings, secret_files=()) == with_it


def test_a_variable_that_is_no_secret_has_no_file() -> None:
    assert all(variable.names == (variable.name,) for variable in TABLE if not variable.confidential)


OPEN = (
    "expected a file that others cannot read: chmod o= {} (a secret of Docker: mode 0440, of Kubernetes: defaultMode "
    "0440)"
)
ALONE = "expected the secret alone, without a byte order mark or blanks around it"


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        *((b"hunter", mode, OPEN) for mode in (0o604, 0o602, 0o444)),
        *((content, 0o600, "expected a line of 1 to 4096 bytes in it") for content in (b"", b"\n", b"x" * 4097)),
        (b"hunter\nhunter\n", 0o600, "expected one line of text without control characters"),
        (b"hunter\r\n", 0o600, "expected one line of text without control characters"),
        (b"hunter\xff", 0o600, "expected UTF-8 text in it"),
        *((text.encode(), 0o600, ALONE) for text in ("\ufeffhunter", " hunter", "hunter \n", "\thunter\n")),
    ],
)
def test_a_file_that_holds_no_secret_is_a_fault_of_one_line_with_the_cure_and_without_the_secret(
    tmp_path: Path, content: bytes, mode: int, expected: str
) -> None:
    path = file_with(tmp_path, content, mode)
    [fault] = faults(SOURCE_API_SECRET="", SOURCE_API_SECRET_FILE=str(path))
    assert fault == f"SOURCE_API_SECRET_FILE={path}: {expected.format(path)}"


def test_a_secret_is_in_a_regular_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path, cause in {tmp_path: "expected a readable file: Is a directory", pipe: "expected a regular file"}.items():
        assert faults(SHARED_SECRET="", SHARED_SECRET_FILE=str(path)) == (f"SHARED_SECRET_FILE={path}: {cause}",)


def test_a_secret_is_given_in_one_way(tmp_path: Path) -> None:
    path = file_with(tmp_path, SECRET.encode())
    assert faults(SHARED_SECRET_FILE=str(path)) == (
        "SHARED_SECRET, SHARED_SECRET_FILE: expected one of them, not both",
    )


def test_a_role_opens_no_file_whose_secret_it_does_not_need(tmp_path: Path) -> None:
    absent = {"SHARED_SECRET": "", "SHARED_SECRET_FILE": str(tmp_path / "absent")}
    assert parsed(Role.REPLICATOR, **absent).secret_files == ()
    assert faults(Role.SOURCE, **absent)


def test_a_relative_path_is_refused_for_a_container_or_an_executor_is_elsewhere(tmp_path: Path) -> None:
    path = os.path.relpath(file_with(tmp_path, SECRET.encode()))
    assert faults(SHARED_SECRET="", SHARED_SECRET_FILE=path) == (
        "SHARED_SECRET_FILE: expected the absolute path of a file "
        "(if it is the secret itself, give it as SHARED_SECRET)",
    )


@pytest.mark.parametrize("pasted", [f"/{SECRET}", "/" + "s" * 300, "/hunter2\0"])
def test_a_secret_that_is_pasted_in_the_place_of_its_file_is_not_shown(pasted: str) -> None:
    assert faults(SHARED_SECRET="", SHARED_SECRET_FILE=pasted) == (
        "SHARED_SECRET_FILE: no such file (if it is the secret itself, give it as SHARED_SECRET)",
    )


def test_a_weak_secret_in_a_file_gets_a_strong_one_for_that_file(tmp_path: Path) -> None:
    path = file_with(tmp_path, b"hunter2\n")
    [fault] = faults(SHARED_SECRET="", SHARED_SECRET_FILE=str(path))
    assert f"; a strong one for {path}, made just now: " in fault
