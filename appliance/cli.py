"""The start of ``bin/appliance``, which imports nothing but the standard library.

So help, the version and a mistyped command need no package. The texts of ``help/`` are made of the commands' table and
of the options of each by ``python -m deploy.manual``.
"""

import signal

if __name__ == "__main__":  # before the other imports, in which Ctrl-C would print a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from appliance.command_table import COMMANDS
from appliance.listing import did_you_mean
from appliance.output import say, say_json
from appliance.version import VERSION

_HELP = Path(__file__).with_name("help")


def program() -> NoReturn:
    """Run the command line of this process. Ctrl-C before a command handles it, and a closed pipe, end it silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed before the start
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # not from the start on: a closed connection is no reason to end
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be written
        say(f"appliance: {error.strerror}", error=True)
        code = 1
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, or give help, and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    options = arguments[: [*arguments, "--"].index("--")]
    if not {"-h", "--help"}.isdisjoint(options):
        say_json(_help(arguments))
    elif options[:1] in (["--version"], ["-V"], ["version"]):
        say(f"kafka-cloud-replicator {VERSION}")
    elif fault := _fault(arguments):
        say(*fault.split("\n"), error=True)
        return 2
    else:
        from appliance.command_line import run

        return run(arguments)
    return 0


def _fault(arguments: Sequence[str]) -> str:
    """The help where a command is missing, the nearest where one is mistyped; empty if there is no fault in these."""
    name = "".join(arguments[:1])
    if name.startswith("-"):
        return f"appliance: {name}: options come after the command; see appliance --help"
    below = [file.name.split(".")[1] for file in _HELP.glob(f"{name}.*.txt")] if name in COMMANDS else []
    for place, names in enumerate([COMMANDS, *([below] if below else [])]):
        word = "".join(arguments[place : place + 1])
        if word not in names and not word.startswith("-"):
            program = " ".join(["appliance", *arguments[:place]])
            fault = f"{program}: {did_you_mean(word, names, 'command')}; see {program} --help"
            return fault if word else _help(arguments)
    return ""


def _help(arguments: Sequence[str]) -> str:
    """The help of the command, and of its own command if there is one."""
    names = [word for word in arguments if not word.startswith("-")]
    names = names if names[:1] and names[0] in COMMANDS else []
    files = (help_file(*names[:length]) for length in (2, 1, 0))
    return next(file for file in files if os.path.exists(file)).read_text().rstrip()


def help_file(*names: str) -> Path:
    """The file with the help of a command, or of all."""
    return _HELP / f"{'.'.join(names) or 'appliance'}.txt"


if __name__ == "__main__":
    program()
