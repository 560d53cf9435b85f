"""Who the two ends of a link are to each other: TLS 1.3 with certificates at both ends.

An end accepts the opposite role of the same link and nothing else, and it is checked twice: in the handshake, because a
source's certificate is good only for servers and a destination's only for clients, so that a refused peer is told by an
alert; and by ``Identity.check``, which reads the name.

The credentials are made from the shared secret (``certificates``) or read from files (``certificate_files``).

No session is ever resumed: the server issues no tickets, so every connection proves both identities anew.
"""

import contextlib
import logging
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

from appliance.errors import IdentityRefused, SettingsError
from appliance.settings.values import Side, TunnelSettings
from appliance.tunnel.certificate_files import read_credentials
from appliance.tunnel.certificates import Credentials, make_credentials, names_in, peer_name

log = logging.getLogger("appliance.tunnel")

REMEDY = (
    "SHARED_SECRET (or the authority of the certificate files), SOURCE_CLUSTER_ID and DESTINATION_CLUSTER_ID must be "
    "the same on both VMs, one of them prepared as the source and the other as the destination"
)
"""What to change when an identity is refused."""

CLOCK_REMEDY = "set the clocks of both VMs by NTP, or renew the certificate if it is a file's"
"""What to change when a certificate is not valid yet, or no longer."""


class Identity:
    """One end's certificate, and what it demands of the other end's.

    ``context`` is TLS as this end speaks it on its next connection: the source is the TLS server, the destination the
    client.

    Args:
        link: the link's name.
        role: which end this is.
        credentials: what it shows and whom it believes.
        others: what it does instead when those are refused, while the link's secret is being changed.
    """

    def __init__(self, link: str, role: Side, credentials: Credentials, *others: Credentials) -> None:
        self._peer = peer_name(link, Side.DESTINATION if role is Side.SOURCE else Side.SOURCE)
        self._protocol = ssl.PROTOCOL_TLS_SERVER if role is Side.SOURCE else ssl.PROTOCOL_TLS_CLIENT
        self._contexts = [tls_context(each, self._protocol) for each in (credentials, *others)]

    @classmethod
    def of(cls, settings: TunnelSettings, role: Side) -> "Identity":
        """The identity that the settings give one end.

        Raises:
            SettingsError: its files cannot be used.
        """
        if settings.files:
            return cls(settings.link, role, read_credentials(settings.files, settings.link, role))
        secrets = [secret for secret in (settings.secret, settings.previous_secret) if secret]
        return cls(settings.link, role, *(make_credentials(secret, settings.link, role) for secret in secrets))

    @property
    def context(self) -> ssl.SSLContext:
        """TLS for one connection; the next one may need another."""
        return self._contexts[0]

    def renew(self, credentials: Credentials) -> None:
        """Be known by ``credentials`` from the next connection on.

        Raises:
            SettingsError: TLS does not take them; then everything is as before.
        """
        self._contexts = [tls_context(credentials, self._protocol)]

    def refused(self, context: ssl.SSLContext) -> None:
        """One end did not believe the other with ``context``: if there are other credentials, their turn has come."""
        if len(self._contexts) > 1 and context is self._contexts[0]:
            self._contexts.append(self._contexts.pop(0))
            log.info("trying the other of SHARED_SECRET and SHARED_SECRET_PREVIOUS", extra={"fields": {}})

    def check(self, certificate: bytes | None) -> None:
        """Accept the peer's certificate (DER), whose signature TLS has verified, or raise.

        Raises:
            IdentityRefused: it isn't the opposite role of this link.
        """
        names = names_in(certificate) if certificate else []
        if names != [self._peer]:
            raise IdentityRefused(f"the peer calls itself {', '.join(names) or 'nothing'} instead of {self._peer}")


def tls_context(credentials: Credentials, protocol: int) -> ssl.SSLContext:
    """TLS 1.3 only, a certificate demanded of the peer, no tickets.

    Raises:
        SettingsError: OpenSSL does not take the credentials, for example because their keys are too short.
    """
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the link and the role are checked instead: see Identity.check
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.options |= ssl.OP_NO_TICKET
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0
    try:
        context.load_verify_locations(cadata=credentials.authority.decode())
        with _as_file(credentials.key_and_certificate) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        reason = (error.reason or "unknown").lower().replace("_", " ")
        raise SettingsError([f"TUNNEL_AUTHORITY_FILE, TUNNEL_CERTIFICATE_FILE: not fit for TLS: {reason}"]) from error
    return context


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path at which OpenSSL, which takes no key from memory here, can read ``content``; gone afterwards.

    The file is in memory where the system can do that, and otherwise a temporary one that only its owner may read.
    """
    try:
        descriptor = os.memfd_create("identity")
        path = f"/proc/self/fd/{descriptor}"
    except (AttributeError, OSError):
        descriptor, path = tempfile.mkstemp()
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield path
    finally:
        if not path.startswith("/proc/"):
            Path(path).unlink()
