"""The mutual identity of a link's two ends: TLS 1.3 with certificates at both.

An end accepts the opposite role of the same link and nothing else, and it is checked twice: in the handshake, because a
source's certificate is good only for servers and a destination's only for clients, so that a refused peer gets an
alert; and by ``Identity.check``, which reads the name.

The credentials are made from the shared secret or read from files (both in ``certificates``). In both
cases the client's first flight proves that it knows the secret, before the server says anything (``first_flight``).

No session is ever resumed: the server issues no tickets, so every connection proves both identities again.

While the secret is being changed the client has two; it takes the previous one only until the server has once accepted
the new one.
"""

import contextlib
import copy
import logging
import ssl
from dataclasses import dataclass, replace

from cryptography import x509

from appliance.clock import utc_now
from appliance.errors import IdentityRefused, SettingsError
from appliance.settings.pem_files import as_file
from appliance.settings.secret import Secret
from appliance.settings.values import KeyExchange, Side, TunnelSettings
from appliance.tls.certificates import (
    Credentials,
    days_left,
    link_key,
    make_credentials,
    names_in,
    peer_name,
    read_credentials,
)
from appliance.tls.first_flight import TokenKeys

log = logging.getLogger("appliance.tunnel")

REMEDY = (
    "SHARED_SECRET (or the authority of the certificate files), SOURCE_CLUSTER_ID and DESTINATION_CLUSTER_ID must be "
    "the same on both VMs, one of them prepared as the source and the other as the destination"
)
"""The change for a refused identity."""

SILENCE_REMEDY = (
    "SHARED_SECRET, SOURCE_CLUSTER_ID, DESTINATION_CLUSTER_ID and TUNNEL_KEY_EXCHANGE must be the same on both VMs, "
    "and their clocks right; bin/appliance doctor tells which it is"
)
"""The change for a server that closes on the client's hello without an answer."""

CLOCK_REMEDY = "set the clocks of both VMs by NTP, or renew the certificate if it is a file's"
"""The change for a certificate that is not valid yet, or no longer."""


DAYS_WARNING = 30.0
"""Days before the end of a certificate at which warnings begin."""

RENEWAL_REMEDY = "renew the file of TUNNEL_CERTIFICATE_FILE on that VM"


@dataclass(frozen=True, slots=True, repr=False)
class LinkTls:
    """An end's TLS by one secret: the keys of the first flight's token, the context, and the own certificate."""

    tokens: TokenKeys
    context: ssl.SSLContext
    certificate: x509.Certificate


class Identity:
    """One end's proof of its identity, and its check of the other end's.

    Args:
        link: the link's name.
        role: the end: the source is the TLS server, the destination the client.
        choices: for each secret the token's keys, and the credentials that are shown and trusted. The first is that
            of SHARED_SECRET, one more that of SHARED_SECRET_PREVIOUS.
        exchange: the key exchange, of both ends.
    """

    def __init__(
        self, link: str, role: Side, *choices: tuple[TokenKeys, Credentials], exchange: KeyExchange = KeyExchange.X25519
    ) -> None:
        self.exchange = exchange
        self._peer = peer_name(link, Side.DESTINATION if role is Side.SOURCE else Side.SOURCE)
        self._protocol = ssl.PROTOCOL_TLS_SERVER if role is Side.SOURCE else ssl.PROTOCOL_TLS_CLIENT
        self._choices = [LinkTls(tokens, self._context(each), _leaf(each)) for tokens, each in choices]
        self._newest = self._choices[0].tokens
        self._peer_certificate: bytes | None = None
        self._ends: list[Identity] = [self]

    def twin(self) -> "Identity":
        """The same for another server, which may have the other secret; it is renewed with this one."""
        twin = copy.copy(self)
        self._ends.append(twin)
        return twin

    @classmethod
    def of(cls, settings: TunnelSettings, role: Side) -> "Identity":
        """The identity that the settings give one end."""
        files = read_credentials(settings.files, settings.link, role) if settings.files else None

        def choice(secret: Secret) -> tuple[TokenKeys, Credentials]:
            key = link_key(secret, settings.source_id, settings.destination_id)
            return TokenKeys.of(key), files or make_credentials(key, settings.link, role)

        previous = settings.previous_secret if role is Side.DESTINATION else None
        choices = [choice(secret) for secret in (settings.secret, previous) if secret]
        return cls(settings.link, role, *choices, exchange=settings.key_exchange)

    @property
    def tls(self) -> LinkTls:
        """The credentials of the next connection; the one after it may need others."""
        return self._choices[0]

    @property
    def all_tls(self) -> tuple[LinkTls, ...]:
        """All credentials that this end could use."""
        return tuple(self._choices)

    def days_left(self) -> float:
        """Days until our own certificate is no longer valid."""
        return days_left(self.tls.certificate, utc_now())

    def peer_days_left(self) -> float | None:
        """Days until the certificate that a peer showed last is no longer valid; None before the first."""
        shown = [each._peer_certificate for each in self._ends if each._peer_certificate]
        return min((days_left(x509.load_der_x509_certificate(each), utc_now()) for each in shown), default=None)

    @property
    def accepts_previous(self) -> bool:
        """True as long as SHARED_SECRET_PREVIOUS would still do."""
        return len(self._choices) > 1

    def renew(self, credentials: Credentials) -> None:
        """Use ``credentials`` from the next connection on.

        Raises:
            SettingsError: TLS does not take them; then everything is as before.
        """
        context, leaf = self._context(credentials), _leaf(credentials)
        for end in self._ends:
            end._choices = [replace(each, context=context, certificate=leaf) for each in end._choices]

    def refused(self, keys: LinkTls) -> None:
        """One end refused the other with ``keys``: if there is another secret, use that next."""
        if self.accepts_previous and keys.tokens is self.tls.tokens:
            self._choices = self._choices[::-1]
            log.info("trying the other of SHARED_SECRET and SHARED_SECRET_PREVIOUS", extra={"fields": {}})

    def accepted(self, keys: LinkTls) -> None:
        """Both ends accepted each other with ``keys``: if that is the new secret, drop the previous one."""
        if self.accepts_previous and keys.tokens is self._newest:
            self._choices = [each for each in self._choices if each.tokens is self._newest]
            if not any(each.accepts_previous for each in self._ends):
                log.info("the other end has the new SHARED_SECRET: remove SHARED_SECRET_PREVIOUS", extra={"fields": {}})

    def check(self, certificate: bytes | None) -> None:
        """Accept the peer's certificate (DER), whose signature TLS has verified, or raise.

        Raises:
            IdentityRefused: it isn't the opposite role of this link.
        """
        names = names_in(certificate) if certificate else []
        if names != [self._peer]:
            raise IdentityRefused(f"the peer calls itself {', '.join(names) or 'nothing'} instead of {self._peer}")
        self._peer_certificate = certificate

    def _context(self, credentials: Credentials) -> ssl.SSLContext:
        return tls_context(credentials, self._protocol, self.exchange)


def _leaf(credentials: Credentials) -> x509.Certificate:
    return x509.load_pem_x509_certificates(credentials.key_and_certificate)[0]


def tls_context(credentials: Credentials, protocol: int, exchange: KeyExchange = KeyExchange.X25519) -> ssl.SSLContext:
    """TLS 1.3 only, a certificate demanded of the peer, no tickets."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the link and the role are checked instead: see Identity.check
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.options |= ssl.OP_NO_TICKET
    context.options &= ~ssl.OP_ENABLE_MIDDLEBOX_COMPAT  # on the tunnel's wire it is ``first_flight`` that adds it
    if exchange is KeyExchange.P256:
        context.set_ecdh_curve("prime256v1")
    else:
        _agree_on_keys_cheaply(context)
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0
    try:
        context.load_verify_locations(cadata=credentials.authority.decode())
        with as_file(credentials.key_and_certificate) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        reason = (error.reason or "unknown").lower().replace("_", " ")
        raise SettingsError([f"TUNNEL_AUTHORITY_FILE, TUNNEL_CERTIFICATE_FILE: not fit for TLS: {reason}"]) from error
    return context


def _agree_on_keys_cheaply(context: ssl.SSLContext) -> None:
    """Offer X25519 alone, behind its post-quantum hybrid where Python's ssl can name it.

    A finite field of 8192 bits, which OpenSSL would do as well, costs a server a tenth of a second for each hello. The
    stars have a client send both key shares, so that no server asks for another (OpenSSL 3.5, SSL_CTX_set1_groups).
    A Python that cannot name X25519, as Debian 12's, leaves OpenSSL its own list, of which a client sends a share of
    X25519; in the tunnel ``first_flight`` lets no other one pass.
    """
    set_groups = getattr(context, "set_groups", None)  # from Python 3.15 on
    if set_groups is not None:
        with contextlib.suppress(ssl.SSLError):
            set_groups("*X25519MLKEM768:*X25519")
            return
    with contextlib.suppress(ssl.SSLError):
        context.set_ecdh_curve("X25519")
