"""The login in ``sasl.jaas.config``.

::

    config  = class flag { name "=" value } ";"
    flag    = "required" | "requisite" | "sufficient" | "optional"
    value   = '"' { any | "\\" any } '"' | "'" { any | "\\" any } "'" | word

Java reads it with its StreamTokenizer, in which a backslash in quotes takes the next character as it is, or is an
escape of C. The latter are refused here, and so are comments, which it skips.
"""

import re
from dataclasses import dataclass

from appliance.settings.secret import Secret

_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z_$][\w.$-]*(?![\w.$-]))"""
_OPTION = re.compile(rf"\s*([\w.]+)\s*=\s*({_VALUE})")
_ENTRY = re.compile(rf"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)((?:{_OPTION.pattern})*)\s*;\s*", re.I)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_OF_C = "01234567abfnrtv"
"""Characters that Java reads as others after a backslash."""

_KEY_AND_SECRET = {
    "PlainLoginModule": ("username", "password"),
    "ScramLoginModule": ("username", "password"),
    "OAuthBearerLoginModule": ("clientId", "clientSecret"),
}
"""The options of each login module with a name and its secret."""

_EXTENSION = "extension_"


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """A user, or a client of a token endpoint, with its secret; ``scope`` and ``extensions`` are OAuth's."""

    user: str
    password: Secret
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()


def password_login(config: str) -> PasswordLogin:
    """The login of a SASL client with a name and a secret; ValueError, without the secret, if it is none."""
    entry = _ENTRY.fullmatch(config)
    if entry is None:
        raise ValueError("expected one login module with its options, and a semicolon at the end")
    module = entry[1].rpartition(".")[2]
    if module not in _KEY_AND_SECRET:
        raise ValueError(f"{module} is not a login by user name and password")
    options = {name: _unquoted(value) for name, value in _OPTION.findall(entry[2])}
    names = _KEY_AND_SECRET[module]
    missing = [name for name in names if not options.get(name)]
    if missing:
        raise ValueError(f"{module} without {' and '.join(missing)}")
    user, password = (options[name] for name in names)
    extensions = ((name[len(_EXTENSION) :], value) for name, value in options.items() if name.startswith(_EXTENSION))
    return PasswordLogin(user, Secret(password), options.get("scope", ""), tuple(extensions))


def _unquoted(value: str) -> str:
    if value[0] not in "\"'":
        return value
    if any(escaped in _OF_C for escaped in _ESCAPED.findall(value)):
        raise ValueError("a backslash in quotes before a letter or a digit, which Java reads as another character")
    return _ESCAPED.sub(r"\1", value[1:-1])
