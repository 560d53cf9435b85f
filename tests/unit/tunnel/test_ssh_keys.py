from pathlib import Path

import asyncssh
import pytest

from appliance.errors import SettingsError
from appliance.settings.secret import Secret
from appliance.settings.values import KeyFiles, Side, SshSettings, Transport
from appliance.tunnel.ssh.keys import LinkKeys, derived_keys, keys_in, link_keys
from tests.support.ssh import keys
from tests.support.tunnel import LINK, SECRET, tunnel_settings

OTHER_SECRET = "another-9fTz2kLq8wXe4vBn6mRc1yUa"


def public(key: asyncssh.SSHKey) -> str:
    return key.export_public_key("openssh").decode().split()[1]


def key_files(directory: Path) -> tuple[KeyFiles, asyncssh.SSHKey, asyncssh.SSHKey]:
    own, peer = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    files = KeyFiles(directory / "own", directory / "peers")
    files.key.write_bytes(own.export_private_key("openssh"))
    files.key.chmod(0o600)
    files.peer_keys.write_bytes(peer.export_public_key("openssh"))
    return files, own, peer


def test_both_vms_derive_the_same_keys_and_every_version_will() -> None:
    assert public(keys(Side.SOURCE).own) == "AAAAC3NzaC1lZDI1NTE5AAAAIDkfYoLj6e+R8FIeLhW2UNLMzsabQ2gJL+2Gv/2JcEAp"
    assert public(keys(Side.DESTINATION).own) == "AAAAC3NzaC1lZDI1NTE5AAAAIOZuWXZOtSmQwVIGwRS/0Z0sYXZ77vHYXu5/rwYWLWpg"


def test_each_end_expects_what_the_other_has() -> None:
    source, destination = keys(Side.SOURCE), keys(Side.DESTINATION)
    assert [public(key) for key in source.peers] == [public(destination.own)]
    assert [public(key) for key in destination.peers] == [public(source.own)]


@pytest.mark.parametrize(("secret", "link"), [(OTHER_SECRET, LINK), (SECRET, "orange-melon")])
def test_another_secret_or_link_has_other_keys(secret: str, link: str) -> None:
    others = derived_keys(Secret(secret), link, Side.SOURCE)
    ours = {public(keys(side).own) for side in Side}
    assert not ours & {public(others.own), *map(public, others.peers)}


def test_keys_in_files_are_taken_in_the_secrets_place(tmp_path: Path) -> None:
    files, own, peer = key_files(tmp_path)
    settings = tunnel_settings(transport=Transport.SSH, secret=Secret(""), ssh=SshSettings("tunnel", files, None))
    taken = link_keys(settings, Side.DESTINATION)
    assert public(taken.own) == public(own)
    assert [public(key) for key in taken.peers] == [public(peer)]


def test_without_files_the_keys_are_derived() -> None:
    taken = link_keys(tunnel_settings(transport=Transport.SSH), Side.SOURCE)
    assert public(taken.own) == public(keys(Side.SOURCE).own)


def test_a_file_that_is_no_key_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    files, _, _ = key_files(tmp_path)
    files.key.write_text("no key")
    with pytest.raises(SettingsError, match="expected an Ed25519 private key"):
        keys_in(files)


def test_keys_do_not_show_themselves() -> None:
    assert "own" not in repr(keys(Side.SOURCE))
    assert isinstance(keys(Side.SOURCE), LinkKeys)
