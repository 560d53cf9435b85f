"""The control centers of the VM's other links, each reached by a Unix socket in CONTROL_CENTER_LINKS.

Each control center shows its own link, because only its network reaches that link's clusters. It serves the same pages
on a socket too, and passes requests for another link to that link's socket.
"""

import asyncio
import contextlib
import hashlib
import time
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

_SECONDS = 5.0
_BODY_MAX = 4 * 1024 * 1024
_KNOWN_FOR = 2.0
_PASSED_ON = ("Content-Type", "Cookie", "Origin", "Sec-Fetch-Site", "Host", "X-Part", "Authorization", "Accept")
_PASSED_BACK = ("Content-Type", "Location", "Set-Cookie", "Retry-After")


def socket_of(directory: Path, link: str) -> Path:
    """The socket of a link; its name is short, because the kernel allows 107 characters for the path."""
    return directory / f"{hashlib.sha256(link.encode()).hexdigest()[:16]}.sock"


class Neighbours:
    """The other control centers; none without a directory."""

    def __init__(self, directory: Path | None, own: Path | None) -> None:
        self._directory = directory
        self._own = own
        self._cards: list[dict[str, Any]] = []
        self._asked = -_KNOWN_FOR
        self._asking = asyncio.Lock()

    async def cards(self) -> list[dict[str, Any]]:
        """The cards of the other links. One that does not answer has its last card, as stale."""
        async with self._asking:
            if time.monotonic() - self._asked >= _KNOWN_FOR:
                before = {card["socket"]: card for card in self._cards}
                self._cards = list(await asyncio.gather(*(_card(path, before) for path in self._sockets())))
                self._asked = time.monotonic()
        return self._cards

    async def pass_on(self, link: str, request: web.Request) -> web.StreamResponse | None:
        """Another link's answer to a request; None if no other link has this name."""
        known = {card["link"]: card for card in await self.cards()}
        if self._directory is None or link not in known:
            return None
        headers = CIMultiDict((name, request.headers[name]) for name in _PASSED_ON if name in request.headers)
        headers["X-Viewer"] = request.remote or ""
        try:
            async with (
                asyncio.timeout(4 * _SECONDS),
                _session(Path(known[link]["socket"])) as session,
                session.request(
                    request.method,
                    "http://link" + request.raw_path,
                    headers=headers,
                    data=await request.read(),
                    allow_redirects=False,
                ) as answer,
            ):
                body = await answer.content.read(_BODY_MAX)
                back = CIMultiDict((name, value) for name, value in answer.headers.items() if name in _PASSED_BACK)
                return web.Response(status=answer.status, headers=back, body=body)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return web.Response(status=502, text=f"the control center of {link} does not answer: {error}\n")

    def _sockets(self) -> list[Path]:
        if self._directory is None:
            return []
        with contextlib.suppress(OSError):
            return sorted(path for path in self._directory.glob("*.sock") if path != self._own)
        return []


async def _card(path: Path, before: dict[str, dict[str, Any]]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_SECONDS), _session(path) as session, session.get("http://link/card.json") as answer:
            answer.raise_for_status()
            card: dict[str, Any] = await answer.json()
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        reason = f"its control center does not answer at {path}: {error}; remove that file if the link is gone"
        last = before.get(str(path), _NOBODY | {"link": path.stem, "replicator": path.stem})
        return last | {"socket": str(path), "state": "unknown", "stale": True, "reason": reason}
    return card | {"socket": str(path)}


_NOBODY: dict[str, Any] = dict.fromkeys(
    ("source", "destination", "since", "at", "lag_records", "lag_seconds", "records", "topics", "problems")
)


def _session(path: Path) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=str(path)))
