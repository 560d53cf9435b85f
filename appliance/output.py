"""The lines that commands print: nothing is left in them that a terminal obeys or does not show.

Names and texts come from brokers and clients, so each may hold escape sequences, line ends and marks that turn the
direction of writing. JSON passes as it is, because it escapes all of these itself.
"""

import dataclasses
import json
import sys
import traceback
from collections.abc import Iterable
from typing import Any

from appliance.errors import ApplianceError, ProcessFailed, SettingsError, SqlRefused


def printable(text: str, keep: str = "") -> str:
    """The text with an escape sequence in place of each character that does not print, but for those to ``keep``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def say(*lines: object, error: bool = False, end: str = "\n") -> None:
    """Print each as one line to stdout, or to stderr."""
    for line in lines:
        print(printable(str(line), keep="\t"), end=end, file=sys.stderr if error else sys.stdout)
    (sys.stderr if error else sys.stdout).flush()


def say_json(text: str) -> None:
    """Print a JSON text, of one line or several, to stdout."""
    print(text, flush=True)


def say_rows(rows: Iterable[Any], *, as_json: bool) -> None:
    """Print dataclasses, each as one line, or all as a JSON list of objects."""
    if as_json:
        say_json(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
    else:
        say(*rows)


def say_tracebacks() -> None:
    """Print the traceback of an unexpected error line by line: it may have a broker's text."""
    sys.excepthook = lambda *error: say(*"".join(traceback.format_exception(*error)).split("\n"), error=True)


def say_error(program: str, error: ApplianceError) -> None:
    """Print an error to stderr, each line after the program's name."""
    several = isinstance(error, SettingsError | ProcessFailed | SqlRefused)
    say(*(f"{program}: {line}" for line in (str(error).split("\n") if several else [error])), error=True)
