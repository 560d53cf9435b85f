"""``python promises.py``: print as JSON the names that a release promises to keep, by kind.

It prints those of the release whose code Python finds first (PYTHONPATH).
"""

import argparse
import json
from collections.abc import Iterator

from appliance import cli, command_line
from appliance.metrics import METRICS
from appliance.settings.variables import NAMES

_EVERYWHERE = ("-h", "--help", "--env-file")


def promises() -> dict[str, list[str]]:
    """The variables, the commands with their options, and the metrics."""
    parsers = {name: _own_parser(name) for name in cli.COMMANDS}
    commands = {said for name, parser in parsers.items() for said in _said(name, parser)}
    return {"variables": sorted(NAMES), "commands": sorted(commands), "metrics": sorted(METRICS)}


def _own_parser(name: str) -> argparse.ArgumentParser:
    return _subcommands(command_line.parser(name, command_line.command(name)))[name]


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    kinds = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: own for action in kinds for name, own in action.choices.items()}


def _said(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """A command, each of its options behind it, and its subcommands with theirs."""
    yield name
    for action in parser._actions:
        yield from (f"{name} {option}" for option in action.option_strings if option not in _EVERYWHERE)
    for below, own in _subcommands(parser).items():
        yield from _said(f"{name} {below}", own)


if __name__ == "__main__":
    print(json.dumps(promises(), indent=0))
