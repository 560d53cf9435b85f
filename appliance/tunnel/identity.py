"""Who the two ends of a link are to each other: TLS 1.3 with certificates at both ends (see ``certificates``).

An end accepts the opposite role of the same link and nothing else, and it is checked twice: in the handshake, because a
source's certificate is good only for servers and a destination's only for clients, so that a refused peer is told by an
alert; and by ``Identity.check``, which reads the name.

No session is ever resumed: the server issues no tickets, so every connection proves both identities anew.
"""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

from appliance.errors import IdentityRefused
from appliance.settings.secret import Secret
from appliance.settings.values import Side
from appliance.tunnel.certificates import Credentials, make_credentials, names_in, peer_name

REMEDY = (
    "SHARED_SECRET, SOURCE_CLUSTER_ID and DESTINATION_CLUSTER_ID must be the same on both VMs, "
    "one of them prepared as the source and the other as the destination"
)
"""What to change when an identity is refused."""


class Identity:
    """One end's certificate, and what it demands of the other end's.

    ``context`` is TLS as this end speaks it: the source is the TLS server, the destination the client.
    """

    def __init__(self, secret: Secret, link: str, role: Side) -> None:
        self._peer = peer_name(link, Side.DESTINATION if role is Side.SOURCE else Side.SOURCE)
        protocol = ssl.PROTOCOL_TLS_SERVER if role is Side.SOURCE else ssl.PROTOCOL_TLS_CLIENT
        self.context = tls_context(make_credentials(secret, link, role), protocol)

    def check(self, certificate: bytes | None) -> None:
        """Accept the peer's certificate (DER), whose signature TLS has verified, or raise.

        Raises:
            IdentityRefused: it isn't the opposite role of this link.
        """
        names = names_in(certificate) if certificate else []
        if names != [self._peer]:
            raise IdentityRefused(f"the peer calls itself {', '.join(names) or 'nothing'} instead of {self._peer}")


def tls_context(credentials: Credentials, protocol: int) -> ssl.SSLContext:
    """TLS 1.3 only, a certificate demanded of the peer, no tickets."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the link and the role are checked instead: see Identity.check
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.options |= ssl.OP_NO_TICKET
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0
    context.load_verify_locations(cadata=credentials.authority.decode())
    with _as_file(credentials.key_and_certificate) as path:
        context.load_cert_chain(path)
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
