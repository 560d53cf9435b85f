"""The tokens of OAUTHBEARER: one for all connections to a cluster, renewed before it expires."""

import asyncio
import base64
import json
import math
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from appliance.clock import epoch_seconds, loop_seconds
from appliance.settings.secret import Secret

_RENEWED_AFTER = 0.7
"""Part of a token's life after which the next login gets a new one."""

_UNKNOWN_LIFE = 60.0
"""Seconds for which a token that does not say when it expires is used."""


class Token(NamedTuple):
    """A token, and the seconds that it is good for."""

    text: Secret
    life: float


class TokenSource:
    """Gives the newest token; ``fetch`` gets another one, once for all that wait for it."""

    def __init__(self, fetch: Callable[[], Awaitable[Token]]) -> None:
        self._fetch = fetch
        self._token = Secret("")
        self._renew_at = self._expires_at = 0.0
        self._fetching: asyncio.Task[None] | None = None

    async def token(self, at_least: float = 0.0) -> Secret:
        """A token that has not expired; one with ``at_least`` that many seconds left, if there is such.

        Raises:
            TokenUnavailable: there is none now.
            CredentialsRefused: the token endpoint does not accept our key.
        """
        now = loop_seconds()
        if not self._token or now >= self._renew_at or now + at_least > self._expires_at:
            if self._fetching is None:
                self._fetching = asyncio.create_task(self._renew(), name="token")
                self._fetching.add_done_callback(self._fetched)
            await asyncio.shield(self._fetching)
        return self._token

    def forget(self) -> None:
        """Get another token for the next login: the broker does not accept this one."""
        self._token = Secret("")

    async def close(self) -> None:
        """End a fetch that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    async def _renew(self) -> None:
        began = loop_seconds()
        token = await self._fetch()
        self._token = token.text
        self._renew_at, self._expires_at = began + _RENEWED_AFTER * token.life, began + token.life

    def _fetched(self, task: asyncio.Task[None]) -> None:
        self._fetching = None
        if not task.cancelled():
            task.exception()  # those that wait raise it; perhaps nobody waits any more


def token_of(text: str, life: float | None = None) -> Token:
    """A token that is good for ``life`` seconds, or until the time that it says itself.

    Raises:
        ValueError: it is no token: empty, or with other than visible characters.
    """
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("no token, which has visible characters alone")
    return Token(Secret(text), life if life is not None and math.isfinite(life) else _life(text))


def _life(text: str) -> float:
    """The seconds until the claim ``exp`` of a JWT (RFC 7519)."""
    try:
        claims = text.split(".")[1]
        expires = float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return _UNKNOWN_LIFE
    return expires - epoch_seconds() if math.isfinite(expires) else _UNKNOWN_LIFE
