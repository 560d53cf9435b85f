"""The login to an SSH server: modern algorithms only, by a key, to a host whose key is pinned.

No files of the user are read: no ``~/.ssh/config``, default keys, agent or ``known_hosts``. All features of a client
except ``direct-tcpip`` channels are off.
"""

import getpass
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import asyncssh
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from appliance.errors import (
    ApplianceError,
    ForwardRefused,
    HostKeyDiffers,
    LoginRefused,
    NoSshServer,
    SettingsError,
    SshUnreachable,
    Unreachable,
    os_reason,
)
from appliance.settings.private_files import read_private_key, read_public_keys
from appliance.settings.values import SshSettings
from appliance.tunnel.model.connect import Timeouts, one_line

KEEPALIVE_SECONDS = 15
"""Silence after which a keepalive is sent, in seconds."""

KEEPALIVE_COUNT = 2
"""Keepalives that may go unanswered: a dead server is noticed after 45 seconds."""

_ALGORITHMS: dict[str, object] = {
    "kex_algs": ["mlkem768x25519-sha256", "curve25519-sha256", "curve25519-sha256@libssh.org"],
    "encryption_algs": ["aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
    "mac_algs": ["hmac-sha2-256-etm@openssh.com"],  # has to be named, but the ciphers above need none
    "signature_algs": ["ssh-ed25519"],
    "compression_algs": ["none"],
}
_ONLY_KEYS: dict[str, object] = {
    "preferred_auth": ["publickey"],
    "public_key_auth": True,
    "password_auth": False,
    "kbdint_auth": False,
    "host_based_auth": False,
    "gss_host": None,
    "gss_kex": False,
    "gss_auth": False,
    "disable_trivial_auth": True,
    "x509_trusted_certs": None,
    "x509_trusted_cert_paths": [],
    "agent_path": None,
    "agent_forwarding": False,
    "x11_forwarding": False,
    "pkcs11_provider": None,
    "proxy_command": None,
}

_T = TypeVar("_T")


def client_options(settings: SshSettings, timeouts: Timeouts) -> asyncssh.SSHClientConnectionOptions:
    """The options of a login, with the keys that are in the files now."""
    user = settings.login.user
    asyncssh.set_log_level(logging.CRITICAL)  # its errors come as exceptions, and are logged in our words
    _name_this_user(user)
    return asyncssh.SSHClientConnectionOptions(
        config=None,
        username=user,
        client_keys=[_own_key(settings.files.key)],
        known_hosts=(_host_keys(settings.files.host_keys), [], []),
        login_timeout=timeouts.handshake,
        keepalive_interval=KEEPALIVE_SECONDS,
        keepalive_count_max=KEEPALIVE_COUNT,
        **_ALGORITHMS,
        **_ONLY_KEYS,
    )


def _own_key(path: Path) -> asyncssh.SSHKey:
    key = _read("TUNNEL_SSH_KEY_FILE", path, read_private_key)
    return asyncssh.import_private_key(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))


def _host_keys(path: Path) -> list[asyncssh.SSHKey]:
    keys = _read("TUNNEL_SSH_HOST_KEYS_FILE", path, read_public_keys)
    return [asyncssh.import_public_key(key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)) for key in keys]


def _read(variable: str, path: Path, read: Callable[[Path], _T]) -> _T:
    try:
        return read(path)
    except ValueError as error:
        raise SettingsError([f"{variable}={path}: {error}"]) from error


def _name_this_user(name: str) -> None:
    """Name the process's user if it has no name, as in many containers: asyncssh asks for it without need."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = name


_FORWARD_REFUSED = (asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, asyncssh.OPEN_UNKNOWN_CHANNEL_TYPE)


def connection_error(error: Exception | None) -> ApplianceError:
    """The error that ended an SSH connection, or kept it from being made; None is an end without a reason."""
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return HostKeyDiffers(f"SSH: {one_line(error.reason)}")
    if isinstance(error, asyncssh.PermissionDenied | asyncssh.IllegalUserName):
        return LoginRefused(f"SSH: {one_line(error.reason)}")
    if error is None or isinstance(error, asyncssh.ConnectionLost):
        return SshUnreachable("SSH connection lost: closed")
    if isinstance(error, OSError):
        return SshUnreachable(f"SSH connection lost: {one_line(os_reason(error)).lower()}")
    return NoSshServer(f"SSH: {one_line(str(error))}")


def channel_error(error: asyncssh.ChannelOpenError, server: str) -> ApplianceError:
    """The error of an SSH server that opens no channel to ``server`` (RFC 4254, section 5.1)."""
    kind = ForwardRefused if error.code in _FORWARD_REFUSED else Unreachable
    return kind(f"{server} from the SSH server: {one_line(error.reason).lower()} ({error.code})")
