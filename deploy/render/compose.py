"""The files of a VM, all in ``prepared/``: docker-compose.yml, and the settings of each service.

Compose reads that file after the one in Git, which is the first in COMPOSE_FILE of .env. So relative paths in it, and
in a docker-compose.override.yml, are those of the link's folder, and the project is called after that folder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from appliance.settings.role import Role
from appliance.settings.values import Settings
from deploy.render import limits
from deploy.render.container import (
    HISTORY_DIRECTORY,
    LINKS_DIRECTORY,
    SERVICES,
    Service,
    by_tls,
    fingerprint,
    healthcheck,
    healthcheck_in_shared_network,
    service_settings,
    settings_text,
)
from deploy.render.mounts import DIRECTORY, mounts, read_at_start
from deploy.render.template import filled
from deploy.render.vm import (
    CONSOLE_PORT,
    CONTROL_CENTER_PORT,
    STATUS_PORT,
    PortMapping,
    Vm,
    bridge,
    port_mappings,
)

COMPOSE_FILE = "prepared/docker-compose.yml"
SOURCE_VM = Role.SOURCE
DESTINATION_VM = Role.DESTINATION | Role.REPLICATOR | Role.CONSOLE
DIRECT_VM = Role.REPLICATOR | Role.CONSOLE
"""The one VM of a link without a tunnel."""

ORDER_VM = Role.SOURCE | Role.DESTINATION | Role.REPLICATOR

_VMS = {
    SOURCE_VM: ("source", "bin/prepare_src_config.sh"),
    DESTINATION_VM: ("destination", "bin/prepare_dest_config.sh"),
    DIRECT_VM: ("destination", "bin/prepare_dest_config.sh"),
    ORDER_VM: ("order", "bin/prepare_dest_config.sh"),
}
"""The template of each VM, and the script that renders it."""

_PASSWD_FILE = "prepared/passwd"
_TAG_MAX = 128
_HEALTHCHECKS_DIRECT = {"replicator": healthcheck(CONSOLE_PORT), "control-center": healthcheck(CONTROL_CENTER_PORT)}
_HEALTHCHECKS: dict[str, str] = {
    "tunnel": healthcheck(STATUS_PORT),
    "gateway": healthcheck(STATUS_PORT),
    "replicator": healthcheck_in_shared_network(CONSOLE_PORT),
    "control-center": healthcheck_in_shared_network(CONTROL_CENTER_PORT),
    "order": healthcheck_in_shared_network(CONSOLE_PORT),
}


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A file below the link's folder; ``mode`` is 0o600 if it holds secrets."""

    path: str
    text: str
    mode: int


def rendered(environment: Mapping[str, str], settings: Settings, role: Role, vm: Vm) -> tuple[RenderedFile, ...]:
    """The files of the VM whose role is ``role``; docker-compose.yml comes last, after all files that it names.

    ``environment`` are the variables from which ``settings`` were made.
    """
    texts = {
        service: settings_text(service_settings(service, environment, settings, vm), vm) for service in SERVICES[role]
    }
    return (
        *(RenderedFile(service.path, text, 0o600) for service, text in texts.items()),
        RenderedFile(_PASSWD_FILE, _passwd(vm), 0o644),
        *_units(settings, role, vm),
        RenderedFile(COMPOSE_FILE, _compose(texts, environment, settings, role, vm), 0o644),
    )


def _passwd(vm: Vm) -> str:
    """A passwd file, because Spark's Java refuses to run as a user without a name."""
    return f"appliance:x:{vm.user}:{vm.group}::/tmp:/usr/sbin/nologin\n"


def _units(settings: Settings, role: Role, vm: Vm) -> Iterator[RenderedFile]:
    """The systemd unit that starts the containers of a VM that copies, in their order."""
    if role & Role.REPLICATOR:
        link = settings.tunnel.link
        user = "root" if vm.is_roots else vm.user
        folder, gateway = str(vm.folder).replace("%", "%%"), bool(role & Role.DESTINATION)
        text = filled("boot.service.j2", link=link, folder=folder, user=user, gateway=gateway)
        yield RenderedFile(unit_file(link), text, 0o644)


def unit_file(link: str) -> str:
    """The path of a link's systemd unit, below the link's folder; the file has the unit's name."""
    return f"prepared/kafka-cloud-replicator-{link}.service"


def _compose(
    texts: Mapping[Service, str], environment: Mapping[str, str], settings: Settings, role: Role, vm: Vm
) -> str:
    (vm_name, script), connections = _VMS[role], settings.tunnel.connections_max
    healthchecks = _HEALTHCHECKS_DIRECT if role is DIRECT_VM else _HEALTHCHECKS
    services = {
        service.name.replace("-", "_"): {
            "command": service.command,
            "volumes": _volumes(service, settings),
            "fingerprint": fingerprint(text, read_at_start(settings, service.role)),
            "healthcheck": healthchecks.get(service.name),
            "ports": [f"{one.at}:{one.container_port}" for one in _published(service, environment, settings, role)],
        }
        for service, text in texts.items()
    }
    if settings.control_center.files and role & Role.CONSOLE:
        services["control_center"]["healthcheck"] = by_tls(healthchecks["control-center"])
    return filled(
        f"docker-compose.{vm_name}.yml.j2",
        script=script,
        link=settings.tunnel.link,
        build=not settings.image,
        image=settings.image or f"kafka-cloud-replicator:{_tag(settings.tunnel.link)}",
        user=f"{vm.user}:{vm.group}",
        host_name=vm.name,
        directory=DIRECTORY,
        bridge=bridge(settings.tunnel.link, role),
        tunnel_memory=limits.tunnel_memory(connections),
        gateway_memory=limits.tunnel_memory(
            connections * len(settings.links), ssh_servers=sum(vm.ssh is not None for vm in settings.tunnel.of_each_vm)
        ),
        tunnel_processes=limits.TUNNEL,
        control_center_memory=limits.CONTROL_CENTER_MEMORY,
        links_directory=LINKS_DIRECTORY,
        history_directory=HISTORY_DIRECTORY,
        audit_folder=settings.audit.folder,
        replicator_memory=limits.replicator_memory(settings.engine, vm.cores, audits=bool(settings.audit.path)),
        order_memory=limits.order_memory(1 + len(settings.links)),
        replicator_processes=limits.replicator_processes(settings.engine, vm.cores),
        **services,
    )


def _published(
    service: Service, environment: Mapping[str, str], settings: Settings, role: Role
) -> tuple[PortMapping, ...]:
    """The ports that a service publishes for all that share its network."""
    parts = {"tunnel": role & Role.SOURCE, "gateway": role & ~Role.SOURCE}
    if role is DIRECT_VM:
        parts = {"replicator": Role.REPLICATOR, "control-center": Role.CONSOLE}
    return port_mappings(environment, settings, parts.get(service.name, Role(0)))


def _volumes(service: Service, settings: Settings) -> list[tuple[str, str]]:
    ours = [(f"./{service.path}", f"{DIRECTORY}/setenv.sh"), (f"./{_PASSWD_FILE}", "/etc/passwd")]
    return ours + [(str(mount.source), mount.target) for mount in mounts(settings, service.role)]


def _tag(link: str) -> str:
    """A legal image tag, one for each link, because the links' checkouts may differ in age."""
    return link.lstrip(".-")[:_TAG_MAX] or "link"
