"""A Keycloak with one realm, from the public Maven repository: a provider of logins as companies have them."""

import contextlib
import json
import os
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

from bench.lib.running import free_port
from testbed.jars import fetch_archive, java
from testbed.process import OwnedProcess
from tests.support.patience import PATIENCE

VERSION = "26.7.3"
_SOON = "-XX:TieredStopAtLevel=1 -XX:-UseG1GC -XX:+UseSerialGC"
"""Java compiles little: most of the time goes into one start, which also builds Keycloak."""

PASSWORD = "correct horse"
CLIENT, CLIENT_SECRET = "control-center", "m7Yq2vKx9TbR4nWs8LpD"
GROUPS = {"alice": "kafka-operators", "bob": "kafka-viewers", "carol": "accounting"}
"""The group of each user."""


def realm() -> dict[str, object]:
    """The realm as Keycloak imports it: a client, and users whose groups are in their ID tokens."""
    groups_in_tokens = {
        "name": "groups",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-group-membership-mapper",
        "config": {"claim.name": "groups", "full.path": "false", "id.token.claim": "true"},
    }
    client = {
        "clientId": CLIENT,
        "secret": CLIENT_SECRET,
        "redirectUris": ["http://127.0.0.1/*"],  # with any port
        "attributes": {"pkce.code.challenge.method": "S256"},
        "protocolMappers": [groups_in_tokens],
    }
    users = [
        {
            "username": user,
            "enabled": True,
            "email": f"{user}@example.com",
            "emailVerified": True,
            "firstName": user,
            "lastName": user,
            "groups": [group],
            "credentials": [{"type": "password", "value": PASSWORD}],
        }
        for user, group in GROUPS.items()
    ]
    groups = [{"name": group} for group in GROUPS.values()]
    return {"realm": "staff", "enabled": True, "clients": [client], "groups": groups, "users": users}


def unpacked(directory: Path) -> Path:
    """Keycloak's folder, below this directory."""
    archive = fetch_archive("org.keycloak", "keycloak-quarkus-dist", VERSION)
    with zipfile.ZipFile(archive) as content:
        content.extractall(directory)
    return directory / f"keycloak-{VERSION}"


@contextlib.asynccontextmanager
async def keycloak(directory: Path) -> AsyncIterator[str]:
    """Run it while the block runs; yield the issuer. A browser takes localhost for another site than 127.0.0.1."""
    home = unpacked(directory)
    (home / "data" / "import").mkdir(parents=True)
    (home / "data" / "import" / "realm.json").write_text(json.dumps(realm()))
    port = free_port("127.0.0.1")
    command = [
        "sh",
        str(home / "bin" / "kc.sh"),
        "start-dev",
        "--db=dev-mem",
        "--import-realm",
    ]
    command += ["--http-host=127.0.0.1", f"--http-port={port}", f"--hostname=http://localhost:{port}"]
    environment = os.environ | {"JAVA": java(), "JAVA_OPTS_KC_HEAP": "-Xms256m -Xmx512m", "JAVA_OPTS_APPEND": _SOON}
    process = await OwnedProcess.start("keycloak", command, directory / "keycloak.log", environment)
    try:
        await process.wait_for_line("Listening on:", 4 * PATIENCE)
        yield f"http://localhost:{port}/realms/staff"
    finally:
        await process.stop()
