"""The cards of the VM's other links, from their control centers' Unix sockets in CONTROL_CENTER_LINKS.

Each control center shows its own link, because only its network reaches that link's clusters. Another link is a card of
data that leads to its own control center's address: no page of another has this page's origin.

A peer has the same user, or root: as the owner of the socket's file, and as the listening process (SO_PEERCRED). In
containers that is the user who prepared the link. Other sockets are passed over; a peer's card is checked all the same.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import socket
import stat
import struct
from pathlib import Path
from typing import Any

from aiohttp import web

from appliance.console.model.charts import SPARK_POINTS
from appliance.settings.control_center import PAGE_URL

CARD_SECONDS = 2.0
_WAIT_SECONDS = 0.3  # of a page; what comes later shows on the next one
_CARD_MAX = 16 * 1024
_LINKS_MAX = 100
_TEXT_MAX = 250
_NUMBER_MAX = 1e14
"""A time in milliseconds is less until the year 5138."""
_UCRED = struct.Struct("iII")  # process, user and group (unix(7))
_TEXTS = ("link", "replicator", "source", "destination", "state", "url")
_NUMBERS = ("since", "seen_since", "at", "lag_records", "lag_seconds", "records", "topics", "problems")
_NOBODY: dict[str, Any] = {**dict.fromkeys((*_TEXTS, *_NUMBERS)), "state": "unknown", "stale": True, "reason": ""}
_NOBODY |= {"spark": [], "headline": ""}


def socket_of(directory: Path, link: str) -> Path:
    """The socket of a link; its name is short, because the kernel allows 107 characters for the path."""
    return directory / f"{hashlib.sha256(link.encode()).hexdigest()[:16]}.sock"


class PeerCenters:
    """The other control centers; none without a directory."""

    def __init__(self, directory: Path | None, own: Path | None) -> None:
        self._directory = directory
        self._own = own
        self._cards: dict[Path, dict[str, Any]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def cards(self) -> list[dict[str, Any]]:
        """The newest cards of the other links. Nobody waits for one that does not answer; its last card is stale."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="cards of other links")
        await asyncio.wait({self._asking}, timeout=_WAIT_SECONDS)
        return list(self._cards.values())

    async def _ask(self) -> None:
        sockets = self._sockets()
        self._cards = {path: self._cards.get(path, _NOBODY | {"replicator": path.stem}) for path in sockets}
        await asyncio.gather(*map(self._renew, sockets))

    async def _renew(self, path: Path) -> None:
        try:
            async with asyncio.timeout(CARD_SECONDS):
                self._cards[path] = _read_card(json.loads(await _body(path)), path)
        except (OSError, TimeoutError, ValueError, RecursionError) as error:
            cause = str(error) or f"nothing within {CARD_SECONDS:g} s"
            reason = f"its control center does not answer at {path}: {cause}; remove that file if the link is gone"
            self._cards[path] |= {"state": "unknown", "stale": True, "reason": reason}

    def _sockets(self) -> list[Path]:
        """The sockets of peers: those of others neither show nor displace one."""
        sockets = []
        for path in self._directory.glob(f"{'[0-9a-f]' * 16}.sock") if self._directory else ():
            with contextlib.suppress(OSError):
                about = path.lstat()
                if path != self._own and stat.S_ISSOCK(about.st_mode) and about.st_uid in (0, os.getuid()):
                    sockets.append(path)
        return sorted(sockets)[:_LINKS_MAX]


def came_by_socket(request: web.Request) -> bool:
    """True of a request of another link's control center."""
    return request.transport is not None and not isinstance(request.transport.get_extra_info("peername"), tuple)


async def _body(path: Path) -> bytes:
    """The JSON that a peer answers over HTTP; nobody else is asked."""
    reader, writer = await asyncio.open_unix_connection(path, limit=_CARD_MAX)
    try:
        credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        if (user := _UCRED.unpack(credentials)[1]) not in (0, os.getuid()):
            raise ValueError(f"it is of user {user}")
        writer.write(b"GET /card.json HTTP/1.1\r\nHost: link\r\nConnection: close\r\n\r\n")
        answer = b""
        while len(answer) <= _CARD_MAX and (part := await reader.read(_CARD_MAX)):
            answer += part
    finally:
        writer.transport.abort()
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 ") or len(answer) > _CARD_MAX:
        raise ValueError("it sends no card")
    return body


def _read_card(document: object, path: Path) -> dict[str, Any]:
    """A card that may be of another release: a value that is missing, or of another type, is unknown."""
    card = document if isinstance(document, dict) else {}
    texts = {name: _text(card.get(name)) for name in _TEXTS}
    if socket_of(path.parent, texts["link"]) != path:
        raise ValueError("it sends no card of this link")
    url = texts["url"] if re.fullmatch(PAGE_URL, texts["url"]) else ""
    numbers = {name: value if _is_number(value := card.get(name)) else None for name in _NUMBERS}
    spark = [each if _is_number(each) else None for each in card["spark"]] if _is_list(card.get("spark")) else []
    known = {**_NOBODY, **texts, **numbers, "spark": spark}
    return {**known, "url": url, "stale": card.get("stale") is not False}


def _is_list(value: object) -> bool:
    return isinstance(value, list) and len(value) <= SPARK_POINTS


def _text(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= _TEXT_MAX and value.isprintable() else "unknown"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _NUMBER_MAX
