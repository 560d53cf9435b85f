"""Texts without secrets: known ones in each form in which a program may print them, and what only looks like one.

A secret may be in a text as it is, quoted for a shell, for JSON, Python, HTML or a URL, in hexadecimal digits, or in
base64, there also behind other bytes, as in ``Basic base64(key:secret)``. Each line of a private key is a secret of its
own.
"""

import base64
import html
import json
import re
import shlex
import urllib.parse
from collections.abc import Iterable, Iterator

MASK = b"****"

_LINE_MIN = 12
"""Length from which one line of a secret of several lines is a secret by itself."""

_BASE64_MIN = 6
"""Length from which a part of base64 is masked: fewer characters are in any text."""

_SAFE_IN_URLS = ("", "/", "~", "!~*'()", "/!~*'():@;,&=+$")
"""Characters that programs leave as they are in a URL."""

_NAMED = rb"(?i)((?:passw(?:or)?d|passphrase|secret|token|credential|private[._-]?key|access[._-]?key)[\w.-]{0,40}"
"""A name from its telling word on. All repetitions are bounded: a log may have lines of megabytes."""

_IN_QUOTES = _NAMED + rb"\\?[\"']?\s{0,4}[:=]\s{0,4})(%s)(?:(?>(?:%s)+)\2|[^\"'\n]+?\2)"
"""Such a name and a value in quotes, which may have the other ones, and its own behind a backslash."""

_LOOKS_SECRET = (
    (re.compile(rb"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL), rb"\1" + MASK),
    (re.compile(rb"(?i)(authorization\W{1,6}(?:basic|bearer|digest|negotiate) +)[^\s\"',]+"), rb"\1" + MASK),
    (re.compile(rb"(\w://[^\s/:@\"']*:)[^\s/@\"']+(?=@)"), rb"\1" + MASK),
    (re.compile(_IN_QUOTES % (rb"[\"']", rb"\\[^\n]|(?!\2)[^\\\n]")), rb"\1\2" + MASK + rb"\2"),
    (re.compile(_IN_QUOTES % (rb"\\[\"']", rb"\\{2,3}[^\n]|(?!\2)[^\n]")), rb"\1\2" + MASK + rb"\2"),
    (re.compile(_NAMED + rb"[ \t]{0,4}=[ \t]{0,4})[^\s\"'\\&,;|]+"), rb"\1" + MASK),
)
"""What is masked though its value is not known, such as a password in a line of another program's log."""


class Masking:
    """Masks these secrets; ``count`` is how often that was done so far."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in forms_of(secret)}
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self.count = 0

    def masked(self, text: bytes) -> bytes:
        """The text without these secrets, and without what looks like one."""
        for form in self._forms:
            if found := text.count(form):
                text = text.replace(form, MASK)
                self.count += found
        for pattern, instead in _LOOKS_SECRET:
            text = pattern.sub(instead, text)
        return text


def forms_of(secret: str) -> Iterator[bytes]:
    """Each form of a secret; of one of several lines, those of the lines too."""
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (form for line in lines if _is_secret(line.strip()) for form in _forms_of_line(line.strip()))
    if lines:
        yield from _forms_of_line(secret)


def _is_secret(line: str) -> bool:
    return len(line) >= _LINE_MIN and not line.startswith("-----")


def _forms_of_line(secret: str) -> Iterator[bytes]:
    raw, in_json = secret.encode("utf-8", "surrogateescape"), json.dumps(secret)[1:-1]
    quoted = {
        secret,
        secret.replace("'", r"'\''"),
        shlex.quote(secret).removeprefix("'").removesuffix("'"),
        re.sub(r'["\\$`]', r"\\\g<0>", secret),
        in_json,
        json.dumps(in_json)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        repr(raw)[2:-1],
        *_in_other_json(in_json),
        *_in_other_json(json.dumps(secret, ensure_ascii=False)[1:-1]),
        secret.replace("\\", "\\\\").replace("'", "\\'"),
        html.escape(secret),
        html.escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),  # Go's, and of Jinja
        urllib.parse.quote_plus(raw),
        urllib.parse.quote_plus(raw, safe="*").replace("~", "%7E"),  # Java's
        *(urllib.parse.quote(raw, safe) for safe in _SAFE_IN_URLS),
    }
    quoted |= {re.sub("%[0-9A-F]{2}", lambda digits: digits[0].lower(), each) for each in quoted if "%" in each}
    yield from (each.encode("utf-8", "surrogateescape") for each in quoted)
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    for shift in range(3):
        yield from _within_base64(raw, shift)


def _in_other_json(text: str) -> Iterator[str]:
    """Text in JSON as other programs write it: Go, Java and JavaScript, and within a string once more."""
    for each in (text, re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text), text.replace("/", "\\/")):
        upper = re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), each)
        yield from (form for one in (each, upper) for form in (one, json.dumps(one, ensure_ascii=False)[1:-1]))


def _within_base64(raw: bytes, shift: int) -> Iterator[bytes]:
    """The base64 of a secret behind ``shift`` bytes, but for the characters that depend on what is beside it."""
    first, end = (8 * shift + 5) // 6, 8 * (shift + len(raw)) // 6
    if end - first >= _BASE64_MIN:
        yield base64.b64encode(bytes(shift) + raw)[first:end]
        yield base64.urlsafe_b64encode(bytes(shift) + raw)[first:end]
