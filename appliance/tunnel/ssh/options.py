"""SSH as the appliance speaks it: modern algorithms only, and everything off but keys and ``direct-tcpip``.

Nothing of the machine's user comes in: no ``~/.ssh/config``, no default keys, no agent, no ``known_hosts``. On the
server's side asyncssh grants nothing that the server's class does not say yes to; see ``server``.
"""

import getpass
import logging
import os
from collections.abc import Callable

import asyncssh

from appliance.tunnel.deadlines import Deadlines
from appliance.tunnel.ssh.keys import LinkKeys

KEEPALIVE_SECONDS = 15
"""Silence after which the peer is asked for a sign of life."""

KEEPALIVE_COUNT = 2
"""Questions that may go unanswered: a dead link is noticed after 45 seconds."""

_ALGORITHMS: dict[str, object] = {
    "kex_algs": ["mlkem768x25519-sha256", "curve25519-sha256", "curve25519-sha256@libssh.org"],
    "encryption_algs": ["aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
    "mac_algs": ["hmac-sha2-256-etm@openssh.com"],  # has to be named, but the ciphers above need none
    "signature_algs": ["ssh-ed25519"],
    "compression_algs": ["none"],
}
_ONLY_KEYS: dict[str, object] = {
    "public_key_auth": True,
    "password_auth": False,
    "kbdint_auth": False,
    "host_based_auth": False,
    "gss_host": None,
    "gss_kex": False,
    "gss_auth": False,
    "x509_trusted_certs": None,
    "x509_trusted_cert_paths": [],
    "agent_forwarding": False,
    "x11_forwarding": False,
}


def server_options(
    keys: LinkKeys, deadlines: Deadlines, factory: Callable[[], asyncssh.SSHServer]
) -> asyncssh.SSHServerConnectionOptions:
    """How the source's end accepts; ``factory`` makes the one that decides for each connection."""
    _quiet()
    return asyncssh.SSHServerConnectionOptions(
        config=None,
        server_factory=factory,
        server_host_keys=[keys.own],
        authorized_client_keys=None,
        allow_pty=False,
        login_timeout=deadlines.handshake,
        keepalive_interval=KEEPALIVE_SECONDS,
        keepalive_count_max=KEEPALIVE_COUNT,
        **_ALGORITHMS,
        **_ONLY_KEYS,
    )


def client_options(user: str, keys: LinkKeys, deadlines: Deadlines) -> asyncssh.SSHClientConnectionOptions:
    """How the destination's end logs in as ``user``."""
    _quiet()
    _name_this_user(user)
    return asyncssh.SSHClientConnectionOptions(
        config=None,
        username=user,
        client_keys=[keys.own],
        known_hosts=(list(keys.peers), [], []),
        preferred_auth=["publickey"],
        disable_trivial_auth=True,
        agent_path=None,
        pkcs11_provider=None,
        proxy_command=None,
        login_timeout=deadlines.handshake,
        keepalive_interval=KEEPALIVE_SECONDS,
        keepalive_count_max=KEEPALIVE_COUNT,
        **_ALGORITHMS,
        **_ONLY_KEYS,
    )


def _quiet() -> None:
    """No line of asyncssh's own: what it has to say comes as an error, and is told in our words."""
    asyncssh.set_log_level(logging.CRITICAL)


def _name_this_user(name: str) -> None:
    """Give a name to a process's user who has none, as in many a container: asyncssh asks for it, and has no use."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = name
