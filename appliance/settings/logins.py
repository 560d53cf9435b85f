"""The settings of logins to brokers beyond a key and its secret: a certificate of our own, and tokens of OAuth."""

import re
import shlex
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.parsers import optional, together
from appliance.settings.secret import Secret
from appliance.settings.variable import of_each_cluster

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

    file: Path = of_each_cluster("SSL_CERTIFICATE_FILE", together(Path)).purpose(
        "PEM file of our certificate, with its chain, that the {side} brokers ask for; empty: none."
    )
    key: Path = of_each_cluster("SSL_KEY_FILE", together(Path)).purpose("PEM file of that certificate's private key.")
    password: Secret = of_each_cluster("SSL_KEY_PASSWORD", Secret).purpose("Password of that key; empty: it has none.")


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """The origin of the tokens of OAUTHBEARER: ``token_url`` or ``command``. ``ca_file`` None: the system's."""

    token_url: str = of_each_cluster("OAUTH_TOKEN_URL", https_url).purpose(
        "Token endpoint, https://..., that gives OAUTHBEARER's token for the API key and secret."
    )
    scope: str = of_each_cluster("OAUTH_SCOPE", str).purpose("Scope that is asked for there; empty: none.")
    ca_file: Path | None = of_each_cluster("OAUTH_CA_FILE", optional(Path)).purpose(
        "PEM file of the authorities that sign the endpoint's certificate; empty: the system's."
    )
    command: tuple[str, ...] = of_each_cluster("OAUTH_TOKEN_COMMAND", command_line).purpose(
        "Program, with arguments, that prints OAUTHBEARER's token, in place of an endpoint; no shell runs it."
    )
    extensions: tuple[tuple[str, str], ...] = of_each_cluster("OAUTH_EXTENSIONS", sasl_extensions).purpose(
        "SASL extensions to send with the token: name=value, comma separated; empty: none."
    )
