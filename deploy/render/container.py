"""The settings of one service, as its container reads them: its own setenv.sh, mounted read-only.

The appliance reads this file itself; it is not an ``env_file`` of Compose. docker-compose 1.29 takes a value in an
``env_file`` up to the end of the line, with its quotes. Newer versions remove the quotes, and replace ``$`` by
variables. No form of a secret with ``$``, ``#`` or quotes is right in both. Besides, ``docker inspect`` shows the
environment, but not this file.

A service gets only the settings that it needs: the tunnel no login to the destination, and the replicator and the
control center no shared secret. The doctor, which runs on request, needs all settings of its VM.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from appliance.settings.env_file import assignment
from appliance.settings.role import TUNNEL_ENDS, Role
from appliance.settings.secret import Secret
from appliance.settings.values import Route, Settings
from appliance.settings.variables import table_of
from deploy.render.mounts import mounts
from deploy.render.vm import CONSOLE_PORT, CONTROL_CENTER_PORT, STATUS_PORT, Vm, port_mappings

SALT = "# salt: "
"""Start of the line of the file that holds ``Vm.salt``."""


@dataclass(frozen=True, slots=True)
class Service:
    """A container: its name in docker-compose.yml, its command, and the command's role."""

    name: str
    command: str
    role: Role

    @property
    def path(self) -> str:
        """The path of its settings file, below the link's folder."""
        return f"prepared/{self.name}.sh"


SERVICES = {
    Role.SOURCE: (Service("tunnel", "source", Role.SOURCE), Service("doctor", "doctor", Role.SOURCE)),
    Role.DESTINATION | Role.REPLICATOR | Role.CONSOLE: (
        Service("gateway", "destination", Role.DESTINATION),
        Service("replicator", "replicate", Role.REPLICATOR),
        Service("control-center", "console", Role.REPLICATOR | Role.CONSOLE),
        Service("doctor", "doctor", Role.DESTINATION | Role.REPLICATOR),
    ),
    Role.REPLICATOR | Role.CONSOLE: (
        Service("replicator", "replicate", Role.REPLICATOR),
        Service("control-center", "console", Role.REPLICATOR | Role.CONSOLE),
        Service("doctor", "doctor", Role.REPLICATOR),
    ),
    Role.SOURCE | Role.DESTINATION | Role.REPLICATOR: (
        Service("tunnel", "source", Role.SOURCE),
        Service("gateway", "destination", Role.DESTINATION),
        Service("order", "order", Role.REPLICATOR),
    ),
}
"""The containers of each VM, by its role: a link's source, its destination, also without a tunnel, any of an order."""

LINKS_DIRECTORY = "/run/links"
"""The directory, shared by all links of the VM, in which their control centers find each other."""

HISTORY_DIRECTORY = "/var/tmp"
"""The place of a volume with the charts of the link: every user may write there, also in a new volume."""

_READ_AGAIN = "export MAX_BYTES_PER_SECOND="

_RESOLVER = "127.0.0.1:53"
"""The DNS shim's address in the network that the replicator shares. Docker's own resolver queries this port only."""


def service_settings(service: Service, environment: Mapping[str, str], settings: Settings, vm: Vm) -> dict[str, str]:
    """The variables of a service: those of its role, changed where a container needs other values."""
    own = {
        variable.name: environment[variable.name]
        for variable in table_of(environment)
        if variable.roles & service.role and environment.get(variable.name)
    }
    mounted = {mount.variable: mount.path for mount in mounts(settings, service.role)}
    return own | _in_a_container(service.role, environment, settings, vm) | mounted


def settings_text(values: Mapping[str, str], vm: Vm) -> str:
    """The text of the file."""
    lines = "".join(assignment(name, value) for name, value in values.items())
    return f"# Written by bin/prepare_*_config.sh: edits are lost, edit setenv.sh.\n{SALT}{vm.salt}\n{lines}"


def fingerprint(text: str, secrets: Iterable[Secret] = ()) -> str:
    """A digest of the file for docker-compose.yml, so that Compose recreates a container when its settings change.

    It includes secrets and SQL in files of their own, which are read at the start. It leaves out the settings that a
    container reads again while it runs.
    """
    lines = (line for line in text.splitlines(keepends=True) if not line.startswith(_READ_AGAIN))
    return hashlib.sha256("".join([*lines, *(secret.reveal() for secret in secrets)]).encode()).hexdigest()[:16]


def _in_a_container(role: Role, environment: Mapping[str, str], settings: Settings, vm: Vm) -> dict[str, str]:
    """Settings that differ in a container; its pages listen on every address, because its loopback is not the VM's."""
    changed: dict[str, str] = {}
    if role & Role.CONSOLE:
        changed |= {"CONTROL_CENTER_LISTEN": f"0.0.0.0:{CONTROL_CENTER_PORT}", "CONTROL_CENTER_LINKS": LINKS_DIRECTORY}
        (published,) = port_mappings(environment, settings, Role.CONSOLE)
        changed["CONTROL_CENTER_HISTORY"] = HISTORY_DIRECTORY if settings.control_center.history else "none"
        changed["CONTROL_CENTER_URL"] = settings.control_center.url_at(published.at)
    if role & Role.REPLICATOR:
        changed |= {"CONSOLE_LISTEN": f"0.0.0.0:{CONSOLE_PORT}"}
        changed |= {"DNS_LISTEN": _RESOLVER} if settings.route is Route.TUNNEL else {}
    if role & TUNNEL_ENDS:
        changed |= {"TUNNEL_STATUS_LISTEN": f"0.0.0.0:{STATUS_PORT}"}
    if role & Role.SOURCE:
        changed |= {"TUNNEL_LISTEN": "0.0.0.0"}
    if role & Role.DESTINATION:
        upstream = settings.dns.upstream or vm.resolver
        changed |= {"DNS_LISTEN": _RESOLVER} | ({"DNS_UPSTREAM": str(upstream)} if upstream else {})
    return changed


_ASK = (
    "import http.client; page = http.client.HTTPConnection('127.0.0.1', {port}, timeout=5); "
    "page.request('GET', '/health'); page.getresponse()"
)
_LEAVE_A_LOST_NETWORK = "import os; 'eth0' in os.listdir('/sys/class/net') or os.kill(1, 15); "


def healthcheck(port: int) -> str:
    """Fail unless the container's ``/health`` answers."""
    return _ASK.format(port=port)


def by_tls(check: str) -> str:
    """The same check of a page with TLS; the certificate names the VM, and not the container's loopback address."""
    context = "timeout=5, context=__import__('ssl')._create_unverified_context()"
    return check.replace("HTTPConnection", "HTTPSConnection").replace("timeout=5", context)


def healthcheck_in_shared_network(port: int) -> str:
    """The healthcheck of a container in another's network namespace; it ends the container when that is lost.

    When the other container restarts, it gets a new namespace, and Docker leaves this container in the old one, where
    only loopback remains. After this container has ended, Docker restarts it in the new namespace.
    """
    return _LEAVE_A_LOST_NETWORK + healthcheck(port)
