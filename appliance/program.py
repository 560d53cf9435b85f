"""The appliance's command lines, as an operator types them on the VM where this process runs."""

import os
import shlex
from pathlib import Path

IN_CONTAINER = "docker-compose exec replicator appliance"
"""Runs a command on a VM with containers; docker-compose.yml sets the variable to it."""

_IN_CHECKOUT = "bin/appliance"
_IS_CHECKOUT = Path(__file__).parents[1].joinpath(_IN_CHECKOUT).exists()
PROGRAM = os.environ.get("APPLIANCE_PROGRAM") or (_IN_CHECKOUT if _IS_CHECKOUT else "appliance")
DOCTOR_ELSEWHERE = PROGRAM == IN_CONTAINER  # in a container of its own, which alone has all settings
DOCTOR = "docker-compose run --rm doctor" if DOCTOR_ELSEWHERE else f"{PROGRAM} doctor destination"


OPERATOR_VARIABLE = "APPLIANCE_OPERATOR"
"""The environment variable with the user of the control center who has given a command."""


def topic_option(name: str) -> str:
    """The argument by which a command takes this topic alone, whatever its name."""
    return f"--topic-name={name}"


def quoted(text: str) -> str:
    """The text as one word of a shell's command line; what does not print is escaped, as bash and others read it."""
    if text.isprintable():
        return shlex.quote(text)
    plain = (c if c.isprintable() and c not in "\\'" else f"\\U{ord(c):08x}" for c in text)
    return f"$'{''.join(plain)}'"
