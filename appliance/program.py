"""The appliance's command lines, as an operator types them on the VM where this process runs."""

import argparse
import os
import shlex
import sys
from pathlib import Path

IN_CONTAINER = "docker-compose exec replicator appliance"
"""Runs a command on a VM with containers; docker-compose.yml sets the variable to it."""

_IN_CHECKOUT = "bin/appliance"
_IS_CHECKOUT = Path(__file__).parents[1].joinpath(_IN_CHECKOUT).exists()
PROGRAM = os.environ.get("APPLIANCE_PROGRAM") or (_IN_CHECKOUT if _IS_CHECKOUT else "appliance")
_SETTINGS = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
_SETTINGS.add_argument("--env-file")
_ENV_FILE: str | None = _SETTINGS.parse_known_args(sys.argv[1:])[0].env_file
"""The settings that this process was given: the commands that it prints need them, too."""

DOCTOR_ELSEWHERE = PROGRAM == IN_CONTAINER  # in a container of its own, which alone has all settings

OPERATOR_VARIABLE = "APPLIANCE_OPERATOR"
"""The environment variable with the user of the control center who has given a command."""


def command_line(words: str, env_file: str | None = _ENV_FILE) -> str:
    """The line that gives a command, with the settings of this process."""
    return " ".join([PROGRAM, words, *([f"--env-file={quoted(env_file)}"] if env_file else [])])


def topic_option(name: str) -> str:
    """The argument by which a command takes this topic alone, whatever its name."""
    return f"--topic-name={name}"


def quoted(text: str) -> str:
    """The text as one word of a shell's command line; what does not print is escaped, as bash and others read it."""
    if text.isprintable():
        return shlex.quote(text)
    plain = (c if c.isprintable() and c not in "\\'" else f"\\U{ord(c):08x}" for c in text)
    return f"$'{''.join(plain)}'"


DOCTOR = "docker-compose run --rm doctor" if DOCTOR_ELSEWHERE else command_line("doctor destination")
