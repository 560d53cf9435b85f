"""A pseudo terminal of a width, and what a program shows at it."""

import contextlib
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def said_at_terminal(columns: int, *arguments: str) -> str:
    """The output, with its colours, of Python with these arguments at a terminal of so many columns."""
    main, other = pty.openpty()
    termios.tcsetwinsize(other, (50, columns))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment["TERM"] = "xterm-256color"
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, cwd=_ROOT, stdin=other, stdout=other, stderr=other, env=environment):
        os.close(other)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal whose last process has ended
            while piece := os.read(main, 4096):
                text += piece
    os.close(main)
    return text.decode().replace("\r\n", "\n")


def shown_at_terminal(columns: int, *arguments: str) -> list[str]:
    """The lines of the same without colours."""
    return _SEQUENCE.sub("", said_at_terminal(columns, *arguments)).replace("\r", "\n").split("\n")
