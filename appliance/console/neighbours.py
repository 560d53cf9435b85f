"""The control centers of the VM's other links, each reached by a Unix socket in CONTROL_CENTER_LINKS.

Each control center shows its own link, because only its network reaches that link's clusters. It serves the same pages
on a socket too, and passes requests for another link to that link's socket.
"""

import asyncio
import contextlib
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from appliance.runtime.local_pages import whole_body

_CARD_SECONDS = 2.0
_PAGE_SECONDS = 20.0
_BODY_MAX = 4 * 1024 * 1024
_KNOWN_FOR = 2.0
_LINKS_MAX = 100
_NUMBER_MAX = 1e14
"""A time in milliseconds is less until the year 5138."""

_PASSED_ON = (
    *("Content-Type", "Cookie", "Origin", "Sec-Fetch-Site", "Host"),
    *("X-Part", "Authorization", "Accept", "X-Forwarded-Proto"),
)
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
        path = socket_of(self._directory, link) if self._directory else None
        if path not in self._sockets() or path is None or came_by_socket(request):
            return None
        headers = CIMultiDict((name, request.headers[name]) for name in _PASSED_ON if name in request.headers)
        headers["X-Viewer"] = request.remote or ""
        try:
            async with (
                asyncio.timeout(_PAGE_SECONDS),
                _session(path) as session,
                session.request(
                    request.method,
                    "http://link" + request.raw_path,
                    headers=headers,
                    data=await request.read(),
                    allow_redirects=False,
                ) as answer,
            ):
                body = await whole_body(answer, _BODY_MAX)
                back = CIMultiDict((name, value) for name, value in answer.headers.items() if name in _PASSED_BACK)
                return web.Response(status=answer.status, headers=back, body=body)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            reason = str(error) or f"nothing within {_PAGE_SECONDS:g} s"
            return web.Response(status=502, text=f"the control center of {link} does not answer: {reason}\n")

    def _sockets(self) -> list[Path]:
        if self._directory is None:
            return []
        with contextlib.suppress(OSError):
            return sorted(path for path in self._directory.glob("*.sock") if path != self._own)[:_LINKS_MAX]
        return []


def came_by_socket(request: web.Request) -> bool:
    """True of a request that another link's control center has passed on; it is not passed on again."""
    return request.transport is not None and not isinstance(request.transport.get_extra_info("peername"), tuple)


async def _card(path: Path, before: dict[str, dict[str, Any]]) -> dict[str, Any]:
    try:
        async with (
            asyncio.timeout(_CARD_SECONDS),
            _session(path) as session,
            session.get("http://link/card.json") as answer,
        ):
            answer.raise_for_status()
            return _read_card(json.loads(await whole_body(answer, _BODY_MAX)), path)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, RecursionError) as error:
        cause = str(error) or f"nothing within {_CARD_SECONDS:g} s"
        reason = f"its control center does not answer at {path}: {cause}; remove that file if the link is gone"
        last = before.get(str(path), _NOBODY | {"link": path.stem, "replicator": path.stem})
        return last | {"socket": str(path), "state": "unknown", "stale": True, "reason": reason}


def _read_card(sent: object, path: Path) -> dict[str, Any]:
    """A card that may be of another release: a value that is missing, or of another type, is unknown.

    Raises:
        ValueError: it is no card of this socket's link.
    """
    given = sent if isinstance(sent, dict) else {}
    texts = {name: value if isinstance(value := given.get(name), str) else "unknown" for name in _TEXTS}
    if socket_of(path.parent, texts["link"]) != path:
        raise ValueError("it sends no card of this link")
    numbers = {name: value if _is_number(value := given.get(name)) else None for name in _NUMBERS}
    return {**texts, **numbers, "reason": "", "stale": given.get("stale") is not False, "socket": str(path)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _NUMBER_MAX


_TEXTS = ("link", "replicator", "source", "destination", "state")
_NUMBERS = ("since", "at", "lag_records", "lag_seconds", "records", "topics", "problems")
_NOBODY: dict[str, Any] = dict.fromkeys((*_TEXTS, *_NUMBERS))


def _session(path: Path) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=str(path)))
