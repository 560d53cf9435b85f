"""The settings of logins to the control center, by OpenID Connect."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.parsers import listed, matching, optional
from appliance.settings.pem_files import read_authorities
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.variable import variable

_PORT_AND_PATH = r"(:[1-9][0-9]{0,4})?(/[^\s?#@]*)?(?<!/openid-configuration)"
_ISSUER = rf"(https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])|http://(localhost|127(\.[0-9]{{1,3}}){{3}})){_PORT_AND_PATH}"
_issuer = matching(f"({_ISSUER})?", "an https URL without a query, as the provider names itself")
_scopes = matching(r"([^\s]+ )*openid( [^\s]+)*", "scopes with openid among them, such as openid profile")
_values = listed(matching(r".+", "values of the claim, comma separated"))


@dataclass(frozen=True, slots=True)
class PageLoginSettings:
    """The provider that logs users in, and the values of their ``claim`` by which they command, or only read.

    Without ``issuer`` there is no login. ``ca_file`` None: the system's authorities.
    """

    issuer: str = variable("CONSOLE_OIDC_ISSUER", _issuer, roles=Role.CONSOLE).purpose(
        "Issuer URL of the OpenID Connect provider by which users log in to the page; empty: no such login."
    )
    client_id: str = variable("CONSOLE_OIDC_CLIENT_ID", str, roles=Role.CONSOLE).purpose(
        "Client id of the page at that provider."
    )
    client_secret: Secret = variable("CONSOLE_OIDC_CLIENT_SECRET", Secret, roles=Role.CONSOLE).purpose(
        "Secret of that client; empty if the provider wants none (PKCE alone)."
    )
    ca_file: Path | None = variable("CONSOLE_OIDC_CA_FILE", optional(Path), roles=Role.CONSOLE).purpose(
        "PEM file of the authorities that sign the provider's certificate; empty: the system's."
    )
    scope: str = variable("CONSOLE_OIDC_SCOPE", _scopes, "openid profile", Role.CONSOLE).purpose(
        "Scopes that the page asks for, separated by spaces; openid is one of them."
    )
    claim: str = variable("CONSOLE_OIDC_CLAIM", str, "groups", Role.CONSOLE).purpose(
        "Claim of a user whose values give the rights: a text, or a list of texts."
    )
    operators: tuple[str, ...] = variable("CONSOLE_OIDC_OPERATORS", _values, roles=Role.CONSOLE).purpose(
        "Values of that claim whose users also command; comma separated."
    )
    viewers: tuple[str, ...] = variable("CONSOLE_OIDC_VIEWERS", _values, roles=Role.CONSOLE).purpose(
        "Values of that claim whose users read; comma separated, * for all users."
    )

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
