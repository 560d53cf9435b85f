"""The permission to do more than read: for CONSOLE_TOKEN, given in a form for a session, or with each request.

- A token is compared in constant time, before anything else: a right one is accepted at once, whatever others sent.
- Answers to wrong ones are delayed; so that few connections wait, those beyond a bound are refused without a delay.
- A session is a random cookie that only this page's own forms send (HttpOnly, SameSite=Strict); it ends by itself.
- A request from another site is refused, whatever it carries: by Origin and Sec-Fetch-Site.
"""

import asyncio
import base64
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping

from appliance.settings.secret import Secret

SESSION_SECONDS = 8 * 3600
_SESSIONS_MAX = 256
_DELAY_SECONDS = 1.0
_DELAYED_MAX = 64


class Access:
    """The token's check and the open sessions. ``clock`` is in seconds, and ``sleep`` waits for some."""

    def __init__(
        self, token: Secret, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._token = token
        self._clock = clock
        self._sleep = sleep
        self._sessions: dict[str, float] = {}
        self._delayed = 0

    def begin(self, token: str) -> str | None:
        """A new session's cookie; None for a wrong token."""
        if not self._right(token):
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

    def given_by(self, authorization: str) -> bool:
        """True if the header has the token: as a bearer's, or as the password of any user."""
        token = _token_of(authorization)
        return token is not None and self._right(token)

    async def delay(self) -> bool:
        """Wait before a wrong token is answered; False at once if too many wait already."""
        if self._delayed >= _DELAYED_MAX:
            return False
        self._delayed += 1
        try:
            await self._sleep(_DELAY_SECONDS)
        finally:
            self._delayed -= 1
        return True

    def _right(self, token: str) -> bool:
        given, own = token.encode(errors="surrogateescape"), self._token.reveal().encode()
        return bool(own) and hmac.compare_digest(given, own)


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

    A name without a dot is in no public DNS.
    """
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    name = name.lower().rstrip(".")
    is_address = ":" in name or all(part.isdigit() for part in name.split("."))
    return is_address or "." not in name or name.endswith(".localhost") or name in {one.lower() for one in names}
