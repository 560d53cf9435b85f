"""``python -m deploy.image.entrypoint``: the image's entrypoint, to standard output.

``docker run IMAGE status`` runs the appliance's command, and ``docker run IMAGE python`` any other program. The names
are those of the appliance: some are names of Debian's programs, too.
"""

from appliance.command_table import COMMANDS

SCRIPT = """\
#!/bin/sh
# Runs one of the appliance's commands, or another program.
case "${{1:-}}" in
{commands} | help | version | -*) exec appliance "$@" ;;
esac
command -v "${{1:-}}" >/dev/null || exec appliance "$@"  # names the nearest command
exec "$@"
"""


def entrypoint() -> str:
    """The script."""
    return SCRIPT.format(commands=" | ".join(COMMANDS))


if __name__ == "__main__":
    print(entrypoint(), end="")
