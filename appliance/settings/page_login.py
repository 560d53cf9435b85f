"""The settings of logins to the control center, by OpenID Connect."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from appliance.settings.parsers import listed, matching, optional
from appliance.settings.pem_files import read_authorities
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.variable import Variable

_T = TypeVar("_T")

_PORT_AND_PATH = r"(:[1-9][0-9]{0,4})?(/[^\s?#@]*)?(?<!/openid-configuration)"
_ISSUER = rf"(https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])|http://(localhost|127(\.[0-9]{{1,3}}){{3}})){_PORT_AND_PATH}"
_VALUES = listed(matching(r".+", "values of the claim, comma separated"))


def _of(name: str, reason: str, parse: Callable[[str], _T], default: str = "") -> Variable[_T]:
    name = f"CONSOLE_OIDC_{name}"
    return Variable(name, reason, parse, default, roles=Role.CONSOLE, confidential=parse is Secret)


@dataclass(frozen=True, slots=True)
class PageLoginSettings:
    """The provider that logs users in, and the values of their ``claim`` by which they command, or only read.

    Without ``issuer`` there is no login. ``ca_file`` None: the system's authorities.
    """

    issuer: Annotated[
        str,
        _of(
            "ISSUER",
            "Issuer URL of the OpenID Connect provider by which users log in to the page; empty: no such login.",
            matching(f"({_ISSUER})?", "an https URL without a query, as the provider names itself"),
        ),
    ]
    client_id: Annotated[str, _of("CLIENT_ID", "Client id of the page at that provider.", str)]
    client_secret: Annotated[
        Secret, _of("CLIENT_SECRET", "Secret of that client; empty if the provider wants none (PKCE alone).", Secret)
    ]
    ca_file: Annotated[
        Path | None,
        _of(
            "CA_FILE",
            "PEM file of the authorities that sign the provider's certificate; empty: the system's.",
            optional(Path),
        ),
    ]
    scope: Annotated[
        str,
        _of(
            "SCOPE",
            "Scopes that the page asks for, separated by spaces; openid is one of them.",
            matching(r"([^\s]+ )*openid( [^\s]+)*", "scopes with openid among them, such as openid profile"),
            "openid profile",
        ),
    ]
    claim: Annotated[
        str,
        _of("CLAIM", "Claim of a user whose values give the rights: a text, or a list of texts.", str, "groups"),
    ]
    operators: Annotated[
        tuple[str, ...],
        _of("OPERATORS", "Values of that claim whose users also command; comma separated.", _VALUES),
    ]
    viewers: Annotated[
        tuple[str, ...],
        _of("VIEWERS", "Values of that claim whose users read; comma separated, * for all users.", _VALUES),
    ]

    def __bool__(self) -> bool:
        return bool(self.issuer)


def page_login_faults(own: PageLoginSettings) -> Iterator[str]:
    """The faults between the values."""
    if own and not own.client_id:
        yield "CONSOLE_OIDC_CLIENT_ID: required with CONSOLE_OIDC_ISSUER"
    if own and not (own.operators or own.viewers):
        yield "CONSOLE_OIDC_OPERATORS, CONSOLE_OIDC_VIEWERS: expected one of them, or nobody may log in"
    if "*" in own.operators:
        yield "CONSOLE_OIDC_OPERATORS=*: expected names: each user of the provider would command"
    if own.ca_file:
        try:
            read_authorities("CONSOLE_OIDC_CA_FILE", own.ca_file)
        except ValueError as error:
            yield str(error)
    if not own and (own.client_id or own.operators or own.viewers or own.ca_file):
        yield "CONSOLE_OIDC_ISSUER: required with the other CONSOLE_OIDC_ variables"
