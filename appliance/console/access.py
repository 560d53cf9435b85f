"""Rights to read and to command: by a token with each request, or by a session, after a token in a form or a login.

- A token is compared in constant time, before anything else: a right one is accepted at once, whatever others sent.
- Answers to wrong ones are delayed; so that few connections wait, those beyond a bound are refused without a delay.
- A session is a random cookie that only this page's own forms send (HttpOnly, SameSite=Strict); it ends by itself.
- A request from another site is refused, whatever it carries: by Origin and Sec-Fetch-Site.
"""

import asyncio
import base64
import enum
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from appliance.settings.secret import Secret
from appliance.settings.target import is_ip_literal

SESSION_SECONDS = 8 * 3600
_SESSIONS_MAX = 256
_OF_A_USER_MAX = 8
"""Most sessions of a user who has logged in; one more ends their oldest."""
_DELAY_SECONDS = 1.0
_DELAYED_MAX = 64


class Right(enum.IntEnum):
    """The rights of whoever asks: a viewer reads all, an operator also commands."""

    NONE = 0
    VIEWER = 1
    OPERATOR = 2


@dataclass(frozen=True, slots=True)
class _Session:
    """A session until ``end``, in seconds of the clock."""

    end: float
    right: Right
    user: str


_NO_SESSION = _Session(0.0, Right.NONE, "")


class Access:
    """The tokens' check and the open sessions. ``clock`` is in seconds, and ``sleep`` waits for some."""

    def __init__(
        self,
        tokens: Mapping[Right, Secret],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._tokens = {right: token.reveal().encode() for right, token in tokens.items() if token}
        self._clock = clock
        self._sleep = sleep
        self._sessions: dict[str, _Session] = {}
        self._delayed = 0

    def begin(self, right: Right, user: str = "") -> str:
        """A new session's cookie; ``user`` is empty after a token."""
        now = self._clock()
        self._sessions = {key: session for key, session in self._sessions.items() if session.end > now}
        # A name may be that of two users, but a right is not had by a name.
        own = [key for key, each in self._sessions.items() if user and (each.user, each.right) == (user, right)]
        for key in own[: max(0, len(own) - _OF_A_USER_MAX + 1)]:
            del self._sessions[key]
        while len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[min(self._sessions, key=lambda key: self._sessions[key].right)]
        session = secrets.token_urlsafe(32)
        self._sessions[session] = _Session(now + SESSION_SECONDS, right, user)
        return session

    def end(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(session, None)

    def in_session(self, session: str) -> Right:
        """The right of a session while it lasts."""
        return self._session(session).right

    def user_in(self, session: str) -> str:
        """The user of a session while it lasts; empty for one that a token began."""
        return self._session(session).user

    def _session(self, session: str) -> _Session:
        present = self._sessions.get(session, _NO_SESSION)
        return present if present.end > self._clock() else _NO_SESSION

    def right_by(self, authorization: str) -> Right:
        """The right of the token in a header: as a bearer's, or as the password of any user."""
        token = _token_of(authorization)
        return Right.NONE if token is None else self.right_of_token(token)

    def right_of_token(self, token: str) -> Right:
        """The right that a token gives."""
        tokens, sent = self._tokens, token.encode(errors="surrogateescape")
        return max((right for right in tokens if hmac.compare_digest(sent, tokens[right])), default=Right.NONE)

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
    if "@" in host:
        return False
    own = name == "localhost" or name.endswith(".localhost") or name in {one.lower() for one in names}
    return own or is_ip_literal(name)
