"""The settings of the control center."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance.settings.page_login import PageLoginSettings, page_login_faults
from appliance.settings.parsers import listed, listening_target, matching, optional
from appliance.settings.pem_files import read_authorities, read_pair
from appliance.settings.role import Role
from appliance.settings.secret import Secret
from appliance.settings.target import Target
from appliance.settings.variable import variable

PAGE_URL = r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?/?"
"""The address of a control center, as a regular expression."""

_domains = listed(matching(r"[A-Za-z0-9._-]+", "a domain name, such as kafka.example.com"))
_url = matching(f"(?:{PAGE_URL})?", "http://host:port or https://host:port")


def _folder(text: str) -> Path | None:
    return None if text == "none" else Path(text)


_CERTIFICATE, _KEY = "CONSOLE_TLS_CERTIFICATE_FILE", "CONSOLE_TLS_KEY_FILE"
_AUTHORITY = "CONSOLE_CLIENT_AUTHORITY_FILE"


@dataclass(frozen=True, slots=True)
class ControlCenterSettings:
    """The address of the page, and who may read it and do more.

    ``token`` is empty if nobody may do more. ``links`` is the directory in which the control centers of one VM find
    each other, None for this link alone. ``names`` are further names by which browsers may call the page. ``url`` is
    where the other control centers' cards of this link lead; empty for ``listen``. ``history`` is the folder of
    the file with the charts, None for none. Without ``certificate`` and ``key`` the page has no TLS.
    """

    listen: Target = variable("CONTROL_CENTER_LISTEN", listening_target, "127.0.0.1:8082", Role.CONSOLE).purpose(
        "Address, host:port, of the control center's page. Port 0: a free one."
    )
    names: tuple[str, ...] = variable("CONTROL_CENTER_NAMES", _domains, roles=Role.CONSOLE).purpose(
        "Domain names by which browsers reach the page, for example through a proxy; comma separated."
    )
    token: Secret = variable("CONSOLE_TOKEN", Secret, roles=Role.CONSOLE).purpose(
        "Secret with which the page also pauses, resumes, promotes and resets; empty: only who logs in does."
    )
    links: Path | None = variable("CONTROL_CENTER_LINKS", optional(Path), roles=Role.CONSOLE).purpose(
        "Directory in which the control centers of a VM's links find each other; empty: each shows its own link."
    )
    url: str = variable("CONTROL_CENTER_URL", _url, roles=Role.CONSOLE).purpose(
        "Address, http://host:port, to which the VM's other control centers link; empty: as this one listens."
    )
    history: Path | None = variable(
        "CONTROL_CENTER_HISTORY", _folder, "~/.local/state/kafka-cloud-replicator", Role.CONSOLE
    ).purpose("Folder of a file of at most 4 MB with a day of charts and events, over a restart; none: none.")
    certificate: Path | None = variable(_CERTIFICATE, optional(Path), roles=Role.CONSOLE).purpose(
        "PEM file of the page's certificate with its chain; empty: no TLS."
    )
    key: Path | None = variable(_KEY, optional(Path), roles=Role.CONSOLE).purpose(
        "PEM file of that certificate's private key."
    )
    viewer_token: Secret = variable("CONSOLE_VIEWER_TOKEN", Secret, roles=Role.CONSOLE).purpose(
        "Secret of those who only read the page, and its /metrics; empty, without logins: all who reach the page."
    )
    authority: Path | None = variable(_AUTHORITY, optional(Path), roles=Role.CONSOLE).purpose(
        "PEM file of the authority of clients that read without that secret."
    )
    login: PageLoginSettings = PageLoginSettings()

    def url_at(self, listening: Target) -> str:
        """The address to which the other control centers' cards of this link lead, if it listens there."""
        return self.url or f"http{'s' if self.certificate else ''}://{listening}/"

    @property
    def closed(self) -> bool:
        """True if not everybody may read who reaches the page."""
        return bool(self.viewer_token or self.login)

    @property
    def files(self) -> dict[str, Path]:
        """The files of TLS, by their variables; empty without TLS."""
        files = {_CERTIFICATE: self.certificate, _KEY: self.key, _AUTHORITY: self.authority}
        return {name: file for name, file in files.items() if file}

    def read_files(self) -> tuple[bytes, bytes]:
        """The certificate with its key, and the authority if there is one, in PEM."""
        pair = read_pair((_CERTIFICATE, self.files[_CERTIFICATE]), (_KEY, self.files[_KEY]))
        return pair, read_authorities(_AUTHORITY, self.authority) if self.authority else b""


def page_faults(own: ControlCenterSettings) -> Iterator[str]:
    """The faults between the values, and of the files."""
    yield from page_login_faults(own.login)
    if own.token and own.token == own.viewer_token:
        yield "CONSOLE_VIEWER_TOKEN: expected another secret than CONSOLE_TOKEN, with which viewers would command"
    if bool(own.certificate) != bool(own.key):
        yield f"{_CERTIFICATE} and {_KEY}: expected both files, or neither"
    elif own.authority and not (own.certificate and own.viewer_token):
        yield f"{_AUTHORITY}={own.authority}: expected with it {_CERTIFICATE} and CONSOLE_VIEWER_TOKEN"
    elif own.certificate:
        try:
            own.read_files()
        except ValueError as error:
            yield str(error)
