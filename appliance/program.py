"""The appliance's command lines, as an operator types them on the VM where this process runs."""

import os
import shlex

IN_CONTAINER = "docker-compose exec replicator appliance"
"""Runs a command on a VM with containers; docker-compose.yml sets the variable to it."""

PROGRAM = os.environ.get("APPLIANCE_PROGRAM") or "bin/appliance"
DOCTOR_ELSEWHERE = PROGRAM == IN_CONTAINER  # in a container of its own, which alone has all settings
DOCTOR = "docker-compose run --rm doctor" if DOCTOR_ELSEWHERE else f"{PROGRAM} doctor destination"


def topic_option(name: str) -> str:
    """The option by which a command that takes a regex of topics takes this one alone."""
    return f"--topic {shlex.quote(name.replace('.', '[.]'))}"
