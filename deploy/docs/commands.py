"""The page of the commands: the help of each, with its options and examples."""

from itertools import groupby

from appliance.cli import help_file
from appliance.command_table import COMMANDS

_HEAD = """\
# Commands

Each command with its options and examples, as `appliance COMMAND --help` prints them. The program is `bin/appliance` in
a checkout, `appliance` where the package is installed, and `docker-compose exec replicator appliance` on a VM with
containers; the doctor has a container of its own there: `docker-compose run --rm doctor`.

"""


def page() -> str:
    """The text of docs/reference/commands.md."""
    groups = groupby(COMMANDS.items(), key=lambda item: item[1].group)
    return _HEAD + "\n".join(
        [
            f"```text\n{help_file().read_text()}```\n",
            *(_group(title, [name for name, _ in each]) for title, each in groups),
        ]
    )


def _group(title: str, names: list[str]) -> str:
    return "\n".join([f"## {title}\n", *map(_command, names)])


def _command(name: str) -> str:
    """The help of a command, and of each command below it."""
    below = sorted(file.name.split(".")[1] for file in help_file().parent.glob(f"{name}.*.txt"))
    return "\n".join([_shown("###", name), *(_shown("####", name, word) for word in below)])


def _shown(level: str, *words: str) -> str:
    return f"{level} {' '.join(words)}\n\n```text\n{help_file(*words).read_text()}```\n"
