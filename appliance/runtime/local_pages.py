"""The pages of other processes of this VM, asked over HTTP: everything bounded."""

import asyncio
import json
import os
from typing import Any

import aiohttp

from appliance.errors import Unreachable
from appliance.settings.target import Target

_SECONDS = 5.0
_BYTES_MAX = 64 * 1024 * 1024
"""A status of 10,000 partitions has some 8 MiB."""

_ANY = {"0.0.0.0": os.environ.get("APPLIANCE_REPLICATOR") or "127.0.0.1", "::": "::1"}
"""Addresses to ask at; a control center in a container of its own has the replicator's host in its environment."""


def dialled(at: Target) -> Target:
    """The address at which a page that listens on ``at`` is asked from this VM."""
    return Target(_ANY.get(at.host, at.host), at.port)


async def page_at(at: Target, path: str, session: aiohttp.ClientSession) -> tuple[int, bytes]:
    """The status code and the body of a page of this VM."""
    try:
        async with (
            asyncio.timeout(_SECONDS),
            session.get(f"http://{dialled(at)}{path}", allow_redirects=False) as answer,
        ):
            return answer.status, await whole_body(answer, _BYTES_MAX)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise Unreachable(str(error) or f"no answer within {_SECONDS:g} s") from error


async def whole_body(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """The body of an answer."""
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > most:
            raise ValueError(f"an answer of more than {most} bytes")
    return bytes(body)


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; empty if it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
