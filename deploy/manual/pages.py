"""The commands as pages: the text of the help of each, and its options, as its own parser has them."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from appliance.command_line import command, parser
from appliance.command_table import COMMANDS
from deploy.manual.examples import EXAMPLES, is_of

_DESCRIPTION = """\
Copies Kafka topics between two networks that cannot reach each other: exactly
once, in order, byte for byte. On SIGTERM or Ctrl-C a command finishes its open
work and ends.
"""
_EXIT_CODES = """\
Exit codes: 0 done, or nothing to do; 1 failed, refused, behind or stopped; 2
bad usage or settings, or no such topic; 130 ended by Ctrl-C before its end.
Options and examples: appliance COMMAND --help, or appliance help COMMAND.
"""

WIDTH = 80
"""Columns of the help's lines."""


class _Format(argparse.HelpFormatter):
    """Lines stay as they are where a text has several."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text.rstrip() if "\n" in text else super()._fill_text(text, width, indent)


@dataclass(frozen=True, slots=True)
class Option:
    """An option, or a word that stands for itself: its ``names`` are empty.

    ``value`` names its value, empty for none; ``values`` are all that are possible, if they are few; ``is_path`` is
    true of one that names a file.
    """

    names: Sequence[str]
    value: str
    values: Sequence[str]
    is_path: bool
    help: str


@dataclass(frozen=True, slots=True)
class CommandPage:
    """A command, by its words: a line about it, its help, its options, and the commands below it."""

    words: tuple[str, ...]
    summary: str
    description: str
    help: str
    options: Sequence[Option]
    below: Mapping[str, str]


def pages() -> list[CommandPage]:
    """The page of the whole, then that of each command, each followed by those of its own commands."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH + 2)  # argparse leaves two free
    try:
        return [_page((), "", _whole()), *(page for name in COMMANDS for page in _of(name))]
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


def _whole() -> argparse.ArgumentParser:
    """The parser of all, which describes the commands in groups in place of a list."""
    whole, lines = parser(), [_DESCRIPTION]
    for group in dict.fromkeys(entry.group for entry in COMMANDS.values()):
        of_it = [f"  {name:<16}{entry.summary}" for name, entry in COMMANDS.items() if entry.group == group]
        lines += [f"{group}:", *of_it, ""]
    whole.description = "\n".join([*lines, _EXIT_CODES])
    next(action for action in whole._actions if isinstance(action, argparse._SubParsersAction)).help = argparse.SUPPRESS
    return whole


def _of(name: str) -> Iterator[CommandPage]:
    own = _below(parser(name, command(name)))[name]
    yield _page((name,), COMMANDS[name].summary, own)
    for second, further in _below(own).items():
        yield _page((name, second), _summaries(own)[second], further)


def _page(words: tuple[str, ...], summary: str, own: argparse.ArgumentParser) -> CommandPage:
    options = [_option(action) for action in own._actions if not isinstance(action, argparse._SubParsersAction)]
    below = _summaries(own) if words else {name: entry.summary for name, entry in COMMANDS.items()}
    examples = [f"  # {about}\n  appliance {line}" for line, about in EXAMPLES.items() if is_of(line, " ".join(words))]
    own.formatter_class, own.epilog = _Format, "\n".join(["examples:", *examples]) if words else ""
    return CommandPage(words, summary, own.description or "", own.format_help(), options, below)


def _option(action: argparse.Action) -> Option:
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    is_path = value in ("PATH", "FILE", "DIRECTORY")
    text = (action.help or "") % {**vars(action), "prog": ""}
    return Option(action.option_strings, value, [*map(str, action.choices or ())], is_path, text)


def _below(own: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    kinds = (action for action in own._actions if isinstance(action, argparse._SubParsersAction))
    return {name: further for action in kinds for name, further in action.choices.items()}


def _summaries(own: argparse.ArgumentParser) -> Mapping[str, str]:
    kinds = (action for action in own._actions if isinstance(action, argparse._SubParsersAction))
    return {each.dest: each.help or "" for action in kinds for each in action._choices_actions}
