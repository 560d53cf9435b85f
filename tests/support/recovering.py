"""Secrets in a text, as somebody finds them who knows how programs encode texts."""

import base64
import html
import json
import re
import shlex
import urllib.parse
from collections.abc import Callable, Iterable, Iterator


def encoded(secret: str) -> list[str]:
    """A secret as programs print it."""
    raw = secret.encode()
    return [
        secret,
        shlex.quote(secret),
        json.dumps({"password": secret}),
        json.dumps(secret, ensure_ascii=False),
        json.dumps(json.dumps({"password": secret})),
        repr(secret),
        repr(raw),
        html.escape(secret),
        urllib.parse.quote(secret),
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote_plus(secret),
        urllib.parse.quote_plus(secret, safe="*").replace("~", "%7E"),
        raw.hex(),
        raw.hex().upper(),
        *(base64.b64encode(before + raw + after).decode() for before in (b"", b"k:", b"key:") for after in (b"", b"@")),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    ]


def recovered(text: bytes, secrets: Iterable[str]) -> list[str]:
    """The secrets that are in the text, as they are or encoded."""
    read = list(_readings(text))
    return [secret for secret in secrets if any(secret.encode() in each for each in read)]


def _readings(text: bytes) -> Iterator[bytes]:
    yield text
    shown = text.decode("utf-8", "replace")
    yield urllib.parse.unquote(shown).encode()
    yield urllib.parse.unquote_plus(shown).encode()
    yield html.unescape(shown).encode()
    yield shown.replace(r"'\''", "'").replace("'\"'\"'", "'").encode()
    yield re.sub(r"\\(.)", r"\1", shown).encode()
    yield _of_python(shown).encode()
    for _ in range(2):  # JSON, and JSON in its strings
        strings = re.findall(r'"(?:[^"\\\n]|\\.)*"', shown)
        shown = "\n".join(found.decode() for each in strings for found in _decoded(lambda each=each: _string(each)))
        yield shown.encode()
    shown = text.decode("utf-8", "replace")
    for digits in re.findall(r"(?:[0-9a-fA-F]{2}){4,}", shown):
        yield from _decoded(lambda digits=digits: bytes.fromhex(digits))
        yield from _decoded(lambda digits=digits: bytes.fromhex(digits[1:-1]))
    for run in re.findall(r"[A-Za-z0-9+/_-]{6,}", shown):
        standard = run.replace("-", "+").replace("_", "/")
        for start in range(4):
            part = standard[start:]
            yield from _decoded(lambda part=part: base64.b64decode(part[: len(part) // 4 * 4]))
            yield from _decoded(lambda part=part: base64.b64decode(part + "=" * (-len(part) % 4)))


def _of_python(shown: str) -> str:
    """A text without the escapes in which Python shows bytes."""

    def plain(found: re.Match[str]) -> str:
        return bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "replace")

    return re.sub(r"(?:\\x[0-9a-f]{2})+", plain, shown).replace("\\'", "'").replace("\\\\", "\\")


def _string(quoted: str) -> bytes:
    return str(json.loads(quoted)).encode("utf-8", "replace")


def _decoded(decode: Callable[[], bytes]) -> Iterator[bytes]:
    try:
        yield decode()
    except (ValueError, TypeError):
        return
