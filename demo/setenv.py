"""The setenv.sh of the demo's link, and the environment in which its processes read it."""

import base64
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import appliance
from appliance.settings import variables
from appliance.settings.target import Target
from appliance.settings.variable import Variable
from appliance.settings.variables import ClusterVariables
from demo.input import REGEX, SUFFIX
from testbed.plan import ApiKey


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The way in which the appliance reaches one of the clusters."""

    cluster_id: str
    bootstrap: tuple[Target, ...]
    api_key: ApiKey
    ca_file: Path


@dataclass(frozen=True, slots=True)
class LinkAddresses:
    """The addresses on which the link listens: all on loopback, where two VMs would have addresses of their own."""

    tunnel: Target
    shim: Target
    vpc_resolver: Target


def setenv_text(source: ClusterAccess, destination: ClusterAccess, addresses: LinkAddresses) -> str:
    """The file's text, with a new shared secret.

    Only the source's first broker is named: the others are found as in production, in its metadata and by pattern.
    """
    seed = source.bootstrap[0]
    domain = seed.host.partition(".")[2]
    values: dict[Variable[object], str] = {
        **_cluster(variables.SOURCE, source, (seed,)),
        variables.SOURCE_BROKER_PATTERN: f"*.{domain}:{seed.port}",
        **_cluster(variables.DESTINATION, destination, destination.bootstrap),
        variables.REPLICA_TOPICS_SOURCE_REGEX: REGEX,
        variables.REPLICA_TOPICS_DEST_SUFFIX: SUFFIX,
        variables.SOURCE_SIDE_TUNNEL_IP: addresses.tunnel.host,
        variables.DESTINATION_SIDE_TUNNEL_IP: addresses.shim.host,
        variables.SHARED_SECRET: base64.b64encode(secrets.token_bytes(33)).decode(),
        variables.TUNNEL_PORT: str(addresses.tunnel.port),
        variables.TUNNEL_LISTEN: addresses.tunnel.host,
        variables.TUNNEL_RESOLVER: str(addresses.vpc_resolver),
        variables.TUNNEL_BROKER_NETWORKS: "127.0.1.0/24",
        variables.TUNNEL_STATUS_LISTEN: "127.0.0.1:0",
        variables.DNS_LISTEN: str(addresses.shim),
        variables.CONSOLE_LISTEN: f"{addresses.shim.host}:0",
    }
    return "".join(f"export {variable.name}='{value}'\n" for variable, value in values.items())


def _cluster(
    names: ClusterVariables, access: ClusterAccess, bootstrap: tuple[Target, ...]
) -> dict[Variable[object], str]:
    return {
        names.cluster_id: access.cluster_id,
        names.broker_servers: ",".join(str(target) for target in bootstrap),
        names.api_key: access.api_key.key,
        names.api_secret: access.api_key.secret.reveal(),
        names.ca_file: str(access.ca_file),
    }


def process_environment(ours: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """The environment of the demo's processes: without the user's own settings, which would win over the file.

    Args:
        ours: this process's environment.
        scratch: where they leave their temporary files, even when they are killed.
    """
    inherited = {name: value for name, value in ours.items() if name not in variables.NAMES}
    search = [str(Path(appliance.__file__).parents[1]), *filter(None, [ours.get("PYTHONPATH")])]
    return inherited | {"PYTHONPATH": os.pathsep.join(search), "TMPDIR": str(scratch)}
