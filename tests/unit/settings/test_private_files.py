import base64
import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from appliance.settings.private_files import read_private_key, read_public_keys

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
