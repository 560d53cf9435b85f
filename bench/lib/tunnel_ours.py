"""Both ends of our tunnel as a user runs them: their env file holds only settings without a default."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from appliance.dns.binding import AddressBook
from appliance.settings.env_file import read_settings
from appliance.settings.role import Role
from bench.lib import tunnel_ways
from bench.lib.our_replicator import appliance_command, exports
from bench.lib.running import LOOPBACK, free_port, running
from bench.lib.tunnel_ways import Cipher, Way

_TARGET_NAME = "localhost"
_READY = r"\bready\b"


@contextlib.asynccontextmanager
async def our_tunnel(directory: Path, port: int) -> AsyncIterator[tuple[Way, Cipher]]:
    """``bin/appliance source`` and ``destination``, and their TLS."""
    env_file = directory / "setenv.sh"
    env_file.write_text(env_text(port, tunnel_port=free_port(), dns_port=free_port()))
    env_file.chmod(0o600)
    tunnel = read_settings(env_file, Role.DESTINATION, {}).tunnel
    async with (
        running("our source", appliance_command("source", env_file), directory, _READY) as source,
        running("our destination", appliance_command("destination", env_file), directory, _READY) as destination,
    ):
        entrance = str(AddressBook(tunnel.endpoint_network).address_of(_TARGET_NAME)), port
        yield Way(entrance, (destination, source), tunnel.server.port), tunnel_ways.ours()


def env_text(port: int, tunnel_port: int, dns_port: int) -> str:
    """A setenv.sh whose one source broker is the target."""
    values = {
        "SOURCE_CLUSTER_ID": "bench",
        "SOURCE_BROKER_SERVERS": f"{_TARGET_NAME}:{port}",
        "SOURCE_SECURITY_PROTOCOL": "PLAINTEXT",
        "DESTINATION_CLUSTER_ID": "target",
        "SOURCE_SIDE_TUNNEL_IP": LOOPBACK,
        "DESTINATION_SIDE_TUNNEL_IP": LOOPBACK,
        "SHARED_SECRET": secrets.token_urlsafe(33),
        "TUNNEL_PORT": str(tunnel_port),
        "TUNNEL_LISTEN": LOOPBACK,
        "TUNNEL_BROKER_NETWORKS": "127.0.0.0/8,::1/128",
        "TUNNEL_STATUS_LISTEN": f"{LOOPBACK}:0",
        "DNS_LISTEN": f"{LOOPBACK}:{dns_port}",
    }
    return exports(values)
