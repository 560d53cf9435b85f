"""The settings of logins to brokers beyond a key and its secret: a certificate of our own, and tokens of OAuth."""

import re
import shlex
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from appliance.settings.parsers import optional
from appliance.settings.secret import Secret
from appliance.settings.variable import BothSides

_NO_PASSWORD = Secret("")

_EXTENSION_NAME = re.compile("[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x20-\x7e]+")


def https_url(value: str) -> str:
    """An address that begins with https://."""
    parts = urllib.parse.urlsplit(value)
    if value and (parts.scheme != "https" or not parts.hostname or parts.fragment):
        raise ValueError("expected an address that begins with https://")
    return value


def command_line(value: str) -> tuple[str, ...]:
    """A program and its arguments, split as a shell does, but without a shell's variables and pipes."""
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise ValueError("expected a program and its arguments, with matching quotes") from error


def sasl_extensions(value: str) -> tuple[tuple[str, str], ...]:
    """SASL extensions (KIP-342): ``name=value``, comma separated."""
    pairs = tuple((name, text) for name, _, text in (part.strip().partition("=") for part in value.split(",") if part))
    for name, given in pairs:
        if not _EXTENSION_NAME.fullmatch(name) or name == "auth" or not _EXTENSION_VALUE.fullmatch(given):
            raise ValueError("expected name=value, comma separated, with letters alone in a name")
    return pairs


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """The certificate that we show to the brokers (mutual TLS), as PEM files."""

    file: Annotated[
        Path,
        BothSides.of(
            "SSL_CERTIFICATE_FILE",
            "PEM file of our certificate, with its chain, that the {side} brokers ask for; empty: none.",
            optional(Path),
        ),
    ]
    key: Annotated[Path, BothSides.of("SSL_KEY_FILE", "PEM file of that certificate's private key.", optional(Path))]
    password: Annotated[
        Secret,
        BothSides.of("SSL_KEY_PASSWORD", "Password of that key; empty: it has none.", Secret, confidential=True),
    ] = _NO_PASSWORD


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """The origin of the tokens of OAUTHBEARER: ``token_url`` or ``command``. ``ca_file`` None: the system's."""

    token_url: Annotated[
        str,
        BothSides.of(
            "OAUTH_TOKEN_URL",
            "Token endpoint, https://..., that gives OAUTHBEARER's token for the API key and secret.",
            https_url,
        ),
    ] = ""
    scope: Annotated[str, BothSides.of("OAUTH_SCOPE", "Scope that is asked for there; empty: none.", str)] = ""
    ca_file: Annotated[
        Path | None,
        BothSides.of(
            "OAUTH_CA_FILE",
            "PEM file of the authorities that sign the endpoint's certificate; empty: the system's.",
            optional(Path),
        ),
    ] = None
    command: Annotated[
        tuple[str, ...],
        BothSides.of(
            "OAUTH_TOKEN_COMMAND",
            "Program, with arguments, that prints OAUTHBEARER's token, in place of an endpoint; no shell runs it.",
            command_line,
        ),
    ] = ()
    extensions: Annotated[
        tuple[tuple[str, str], ...],
        BothSides.of(
            "OAUTH_EXTENSIONS",
            "SASL extensions to send with the token: name=value, comma separated; empty: none.",
            sasl_extensions,
        ),
    ] = ()


NO_OAUTH = OAuthSettings()
"""The settings of a login without a token."""
