"""The permission to do more than read: for CONSOLE_TOKEN, given in a form for a session, or with each request.

- A token is compared in constant time. After some wrong ones, further ones from that address are refused for a while.
- A session is a random cookie that only this page's own forms send (HttpOnly, SameSite=Strict); it ends by itself.
- A request from another site is refused, whatever it carries: by Origin and Sec-Fetch-Site.
"""

import base64
import hmac
import secrets
from collections import deque
from collections.abc import Callable, Mapping

from appliance.errors import ApplianceError
from appliance.settings.secret import Secret
from appliance.settings.target import is_ip_literal

SESSION_SECONDS = 8 * 3600
_SESSIONS_MAX = 256
_WRONG_MAX = 5
_WRONG_IN_ALL = 100
_WRONG_SECONDS = 60.0
_ADDRESSES_MAX = 1024


class TooManyWrongTokens(ApplianceError):
    """Several wrong tokens came a moment ago."""


class Access:
    """The token's check and the open sessions. ``clock`` is in seconds."""

    def __init__(self, token: Secret, clock: Callable[[], float]) -> None:
        self._token = token
        self._clock = clock
        self._sessions: dict[str, float] = {}
        self._wrong: dict[str, deque[float]] = {}

    def begin(self, token: str, address: str) -> str | None:
        """A new session's cookie; None for a wrong token.

        Raises:
            TooManyWrongTokens: from this address, or in all.
        """
        if not self._right(token, address):
            return None
        now = self._clock()
        self._sessions = {key: end for key, end in self._sessions.items() if end > now}
        while len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        session = secrets.token_urlsafe(32)
        self._sessions[session] = now + SESSION_SECONDS
        return session

    def end(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(session, None)

    def in_session(self, session: str) -> bool:
        """True while the session lasts."""
        return self._sessions.get(session, 0.0) > self._clock()

    def given_by(self, authorization: str, address: str) -> bool:
        """True if the header has the token: as a bearer's, or as the password of any user.

        Raises:
            TooManyWrongTokens: as ``begin``.
        """
        token = _token_of(authorization)
        return token is not None and self._right(token, address)

    def _right(self, token: str, address: str) -> bool:
        if not self._token:
            return False
        now = self._clock()
        for wrong in self._wrong.values():
            while wrong and wrong[0] <= now - _WRONG_SECONDS:
                wrong.popleft()
        self._wrong = {key: wrong for key, wrong in self._wrong.items() if wrong}
        theirs = self._wrong.get(address, deque())
        in_all = sum(map(len, self._wrong.values()))
        if len(theirs) >= _WRONG_MAX or in_all >= _WRONG_IN_ALL or len(self._wrong) >= _ADDRESSES_MAX:
            raise TooManyWrongTokens("too many wrong tokens: try again in a minute")
        if hmac.compare_digest(token.encode(errors="surrogateescape"), self._token.reveal().encode()):
            return True
        self._wrong.setdefault(address, deque()).append(now)
        return False


def _token_of(authorization: str) -> str | None:
    scheme, _, rest = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode().partition(":")[2]
        except ValueError:  # no base64, or no text
            return ""
    return None


def from_elsewhere(headers: Mapping[str, str]) -> bool:
    """True if a browser sends the request for a page of another site; other programs send neither header."""
    site, origin, host = headers.get("Sec-Fetch-Site"), headers.get("Origin"), headers.get("Host", "")
    if site is not None and site not in ("same-origin", "none"):
        return True
    return origin is not None and origin.partition("://")[2].lower() != host.lower()


def known_host(host: str, names: tuple[str, ...]) -> bool:
    """True if the page is called by an address or a name of its own, and not by another site's (DNS rebinding).

    The resolver of a network may give also a name without a dot to anybody there.
    """
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    name = name.lower().rstrip(".")
    own = name == "localhost" or name.endswith(".localhost") or name in {one.lower() for one in names}
    return own or is_ip_literal(name)
