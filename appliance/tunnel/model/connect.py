"""The client's request for a target and the server's answer, inside the TLS: HTTP/1.1 CONNECT, without IO.

    client: CONNECT b0.orange.example:9093 HTTP/1.1           server: HTTP/1.1 200 connected
            Host: b0.orange.example:9093                              Date: Sat, 21 Nov 2026 10:20:30 GMT

After a 200 the connection is the target's (RFC 9110, section 9.3.6); after anything else it ends. The reason phrase
says in one line what is wrong; the status says whose error it is, in both directions by one table:

    400 PeerError  403 TargetRefused  404 NameUnresolved  502 Unreachable  503 Draining  504 TimedOut

The server is strict, because it serves only our client. The head is bounded, and must equal byte for byte the one that
our client writes for that target: no other header or spelling, no body, no bytes after it before the answer. So no
other reader of HTTP could see another request in it (request smuggling).

The Date (RFC 9110, section 6.6.1) serves only to compare the two VMs' clocks.

``STATUS`` is the server's own target: after the 200 come the bytes of one JSON document, and the end. A server of an
older release refuses it with 403, as every name that is not on its allow-list.
"""

import email.utils
from collections.abc import Iterable
from dataclasses import dataclass

import h11

from appliance.errors import ApplianceError, Draining, NameUnresolved, PeerError, TargetRefused, TimedOut, Unreachable
from appliance.settings.target import Target, is_ip_literal

STATUS = Target("tunnel-status.invalid", 1)
"""The target that stands for the status of the server's end.

It can be no broker: names below ``.invalid`` never resolve (RFC 6761, section 6.4), and no pattern has a domain of one
label.
"""

STATUS_SIZE_MAX = 64 * 1024
"""Largest status document, in bytes; it has some 1,000."""

HEAD_SIZE_MAX = 4096
"""Largest head, in bytes: a host name has at most 253."""

_REASON_LENGTH_MAX = 200
_CONNECTED = 200

_STATUS_OF: tuple[tuple[type[ApplianceError], int], ...] = (
    (PeerError, 400),
    (TargetRefused, 403),
    (NameUnresolved, 404),
    (TimedOut, 504),
    (Draining, 503),
    (Unreachable, 502),
)
"""The first that an error is an instance of, is its status."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer to a CONNECT: an HTTP status and one line.

    ``date`` is its time by the server's clock, to the second, in seconds since 1970; None: it sent none.
    """

    status: int
    reason: str
    date: float | None = None

    @classmethod
    def to(cls, error: ApplianceError) -> "Answer":
        """The answer for ``error``."""
        status = next((status for kind, status in _STATUS_OF if isinstance(error, kind)), 400)
        return cls(status, one_line(str(error)))

    def error(self) -> ApplianceError | None:
        """The error that it stands for; None when the target is connected."""
        if self.status == _CONNECTED:
            return None
        kind = next((kind for kind, status in _STATUS_OF if status == self.status), PeerError)
        return kind(f"{self.reason} ({self.status})")


CONNECTED = Answer(_CONNECTED, "connected")
DRAINING = Draining("the source VM's end of the tunnel is being stopped")


class ConnectServer:
    """The server's end of one CONNECT."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_SIZE_MAX)
        self._received = b""

    def receive(self, data: bytes) -> Target | None:
        """The target, once all of the head is here; ``data`` is empty when the client has ended its direction.

        Raises:
            TargetRefused: the target is an address instead of a name.
        """
        self._received += data
        try:
            self._http.receive_data(data)
            request = self._http.next_event()
            if request is h11.NEED_DATA:
                return None
            end = self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise PeerError(f"no CONNECT request: {error}") from error
        if not isinstance(request, h11.Request) or request.method != b"CONNECT":
            raise PeerError("no CONNECT request")
        if not isinstance(end, h11.EndOfMessage) or _announces_body(request):
            raise PeerError("a CONNECT request has no body")
        if self._http.trailing_data[0]:
            raise PeerError("bytes after the CONNECT request, before its answer")
        target = _target(request.target)
        if self._received != ConnectClient(target).request():
            raise PeerError("the CONNECT request is not as the tunnel client writes it")
        return target

    def answer(self, answer: Answer, now: float | None = None) -> bytes:
        """The answer's bytes; none when the client has hung up without a request. ``now`` is its date."""
        if self._http.our_state is h11.MUST_CLOSE:
            return b""
        headers = [] if answer.status == _CONNECTED else [("Content-Length", "0"), ("Connection", "close")]
        if now is not None:
            headers.append(("Date", email.utils.formatdate(now, usegmt=True)))
        head = h11.Response(status_code=answer.status, headers=headers, reason=answer.reason.encode())
        return self._http.send(head) or b""


class ConnectClient:
    """The client's end of one CONNECT."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_SIZE_MAX)

    def request(self) -> bytes:
        """The request's bytes."""
        name = str(self._target)
        head = h11.Request(method="CONNECT", target=name, headers=[("Host", name)])
        return (self._http.send(head) or b"") + (self._http.send(h11.EndOfMessage()) or b"")

    def receive(self, data: bytes) -> Answer | None:
        """The answer, once all of its head is here; ``data`` is empty when the server has ended its direction."""
        try:
            self._http.receive_data(data)
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise PeerError(f"no answer to CONNECT: {error}") from error
        if event is h11.NEED_DATA:
            return None
        if not isinstance(event, h11.Response):
            raise PeerError("no answer to CONNECT")
        reason = one_line(bytes(event.reason).decode("ascii", "replace"))
        return Answer(event.status_code, reason, _date(event.headers))

    @property
    def first_bytes(self) -> bytes:
        """The target's first bytes, which came together with the answer 200."""
        return self._http.trailing_data[0]


def _announces_body(request: h11.Request) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in request.headers)


def _target(text: bytes) -> Target:
    try:
        target = Target.parse(text.decode("ascii"))
    except ValueError as error:
        raise PeerError("the CONNECT request names no host:port") from error
    if is_ip_literal(target.host):
        raise TargetRefused(f"{target} is an address: the tunnel goes to names only")
    return target


def _date(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """The date among ``headers``; None when there is none, or it is illegible."""
    text = next((value for name, value in headers if name == b"date"), b"")
    try:
        return email.utils.parsedate_to_datetime(text.decode("ascii", "replace")).timestamp()
    except (ValueError, OverflowError):
        return None


def one_line(text: str) -> str:
    """``text`` as an HTTP reason phrase can hold it, and a log can show it."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[:_REASON_LENGTH_MAX]


DRAIN_SECONDS = 5.0
"""Longest time of connections after the stop, in seconds; Docker kills after ten."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds, of all steps from the dial to the end of a relay.

    ``hello`` is the server's for a first flight, which comes with the connection; ``slot`` that for one of
    TUNNEL_CONNECTIONS_MAX to come free; ``answer`` the client's for all that the server does between CONNECT and its
    answer; ``linger`` that of a silent relay of which one direction has ended; ``last_word`` the time that a refused
    peer has to read the reason; ``status`` the client's for a status document, from its dial on.
    """

    dial: float = 5.0
    hello: float = 5.0
    handshake: float = 10.0
    head: float = 10.0
    resolve: float = 11.0
    slot: float = 10.0
    answer: float = 30.0
    linger: float = 60.0
    last_word: float = 2.0
    status: float = 10.0
