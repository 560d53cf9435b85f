"""The setenv.sh of the demo's link, and the environment of the processes that read it."""

import base64
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import appliance
from appliance.settings.target import Target
from appliance.settings.variables import NAMES
from demo.input import REGEX, SUFFIX
from testbed.plan import ApiKey


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The appliance's access to one of the clusters."""

    cluster_id: str
    bootstrap: tuple[Target, ...]
    api_key: ApiKey
    ca_file: Path


@dataclass(frozen=True, slots=True)
class LinkAddresses:
    """The addresses on which the link listens: all on loopback, while two VMs would have their own.

    ``status`` and ``replicator`` are those of the pages of the destination VM's end, and of the replicator.
    """

    tunnel: Target
    shim: Target
    vpc_resolver: Target
    status: Target
    replicator: Target


def setenv_text(source: ClusterAccess, destination: ClusterAccess, addresses: LinkAddresses) -> str:
    """The file's text, with a new shared secret.

    Only the source's first broker is named. The others are found as in production, by metadata and pattern.
    """
    seed = source.bootstrap[0]
    domain = seed.host.partition(".")[2]
    values = {
        **_cluster("SOURCE", source, (seed,)),
        "SOURCE_BROKER_PATTERN": f"*.{domain}:{seed.port}",
        **_cluster("DESTINATION", destination, destination.bootstrap),
        "REPLICA_TOPICS_SOURCE_REGEX": REGEX,
        "REPLICA_TOPICS_DEST_SUFFIX": SUFFIX,
        "SOURCE_SIDE_TUNNEL_IP": addresses.tunnel.host,
        "DESTINATION_SIDE_TUNNEL_IP": addresses.shim.host,
        "SHARED_SECRET": base64.b64encode(secrets.token_bytes(33)).decode(),
        "TUNNEL_PORT": str(addresses.tunnel.port),
        "TUNNEL_LISTEN": addresses.tunnel.host,
        "TUNNEL_RESOLVER": str(addresses.vpc_resolver),
        "TUNNEL_BROKER_NETWORKS": "127.0.1.0/24",
        "TUNNEL_STATUS_LISTEN": str(addresses.status),
        "DNS_LISTEN": str(addresses.shim),
        "CONSOLE_LISTEN": str(addresses.replicator),
        "CONTROL_CENTER_LISTEN": f"{addresses.shim.host}:0",
        "CONTROL_CENTER_HISTORY": "none",
    }
    return "".join(f"export {name}='{value}'\n" for name, value in values.items())


def _cluster(side: str, access: ClusterAccess, bootstrap: tuple[Target, ...]) -> dict[str, str]:
    return {
        f"{side}_CLUSTER_ID": access.cluster_id,
        f"{side}_BROKER_SERVERS": ",".join(str(target) for target in bootstrap),
        f"{side}_API_KEY": access.api_key.key,
        f"{side}_API_SECRET": access.api_key.secret.reveal(),
        f"{side}_CA_FILE": str(access.ca_file),
    }


def process_environment(ours: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """The environment of the demo's processes, without the user's own settings, which would override the file.

    Args:
        ours: this process's environment.
        temporary: the directory for their temporary files, which they leave there when killed.
    """
    inherited = {name: value for name, value in ours.items() if name not in NAMES}
    search = [str(Path(appliance.__file__).parents[1]), *filter(None, [ours.get("PYTHONPATH")])]
    return inherited | {"PYTHONPATH": os.pathsep.join(search), "TMPDIR": str(temporary)}
