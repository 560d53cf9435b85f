"""``appliance completion``: the completion of a shell, as ``python -m deploy.manual`` has made it of all options."""

import argparse
import asyncio
from pathlib import Path

import appliance
from appliance.output import say_json
from appliance.runtime.command import Command

SHELLS = {"bash": "appliance.bash", "zsh": "_appliance", "fish": "appliance.fish"}
"""The file of each shell, named as the shell looks for it."""


async def _completion(parsed: argparse.Namespace, _: asyncio.Event) -> None:
    say_json((Path(appliance.__file__).with_name("help") / SHELLS[parsed.shell]).read_text().rstrip())


def _options(command: argparse.ArgumentParser) -> None:
    command.add_argument("shell", choices=SHELLS, help="your shell")


COMPLETION = Command(
    'Prints the completion of commands and options. In bash and zsh: eval "$(appliance completion bash)", or zsh, in '
    "the file that the shell reads at its start; in fish: appliance completion fish | source.",
    _completion,
    _options,
    has_settings=False,
)
