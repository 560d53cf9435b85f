"""Run a program that the kernel kills when its parent process dies.

``python child_process.py PARENT COMMAND...``: sets the parent-death signal to SIGKILL (prctl(2), PR_SET_PDEATHSIG),
makes sure that the parent has not died before, and executes the command, which inherits the signal. This is a program
of its own because Python code between fork and exec can deadlock in a process with threads.

"Parent" is the thread that forked: start children only from a thread that stays, such as the one of the event loop.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def killed_with_parent(command: Sequence[str]) -> list[str]:
    """The command line that runs ``command`` until it ends or this process dies."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def die_with(parent: int) -> None:
    """Have this process die when its parent does; at once, if that was ``parent`` and has died already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def main(parent: int, command: list[str]) -> None:
    """Replace this process by ``command``, which dies with the process ``parent``."""
    die_with(parent)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
