"""Who the two ends of a link are to each other by SSH: one Ed25519 key pair for each.

Made from the shared secret, both VMs know both pairs:

    seed = derive(secret, "ssh <role> <link>", 32)

The label cannot be a link's name, which has no space, so that no certificate authority shares a seed with a key. Given
as files, each VM holds its own private key and the other end's public ones; then the secret plays no part.
"""

from dataclasses import dataclass

import asyncssh
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from appliance.errors import SettingsError
from appliance.settings.key_files import read_private_key, read_public_keys
from appliance.settings.secret import Secret
from appliance.settings.values import KeyFiles, Side, TunnelSettings
from appliance.tunnel.derivation import derive


@dataclass(frozen=True, slots=True, repr=False)
class LinkKeys:
    """One end's key pair, and the public keys of which the other end has to prove that it holds one."""

    own: asyncssh.SSHKey
    peers: tuple[asyncssh.SSHKey, ...]


def link_keys(settings: TunnelSettings, role: Side) -> LinkKeys:
    """The keys of one end of the link: from files where the settings name them, else from the secret.

    Raises:
        SettingsError: a file is not what it has to be.
    """
    files = settings.ssh.files
    return keys_in(files) if files else derived_keys(settings.secret, settings.link, role)


def derived_keys(secret: Secret, link: str, role: Side) -> LinkKeys:
    """The keys that both VMs make."""
    other = Side.DESTINATION if role is Side.SOURCE else Side.SOURCE
    seeds = (derive(secret, f"ssh {end} {link}", 32) for end in (role, other))
    own, peer = map(Ed25519PrivateKey.from_private_bytes, seeds)
    return LinkKeys(_private(own), (_public(peer.public_key()),))


def keys_in(files: KeyFiles) -> LinkKeys:
    """The keys in files.

    Raises:
        SettingsError: a file is not what it has to be.
    """
    try:
        own, peers = read_private_key(files.key), read_public_keys(files.peer_keys)
    except ValueError as error:
        raise SettingsError([f"{files.key}, {files.peer_keys}: {error}"]) from error
    return LinkKeys(_private(own), tuple(_public(peer) for peer in peers))


def _private(key: Ed25519PrivateKey) -> asyncssh.SSHKey:
    return asyncssh.import_private_key(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))


def _public(key: Ed25519PublicKey) -> asyncssh.SSHKey:
    return asyncssh.import_public_key(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
