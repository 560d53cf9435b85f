"""``python -m testbed.kubernetes.supervisor DIRECTORY [ARGUMENT OF THE MACHINE...]``: a node, until SIGTERM.

It gives the node its namespaces and control groups, and removes all that is left of it at the end. It gets SIGTERM
also if its parent dies in any way. If it is killed itself, the kernel ends the node, and ``sweep`` removes the rest.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from appliance.runtime.child_process import die_with
from testbed import control_groups

KEPT_IN = Path("/var/tmp")
"""A directory on a disk, because an overlay does not work on every file system in memory."""

_PR_SET_PDEATHSIG = 1
_ISOLATED = ("mount", "pid", "net", "uts", "ipc", "cgroup")


def sweep() -> None:
    """Remove what nodes of ended test processes have left behind."""
    for directory in KEPT_IN.glob("appliance-*-*-node"):
        pid = directory.name.split("-")[1]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            remove(directory)


def remove(directory: Path) -> None:
    """Remove the files and the control groups of an ended node."""
    control_groups.remove(control_groups.named(directory.name))
    shutil.rmtree(directory, ignore_errors=True)


def main(directory: Path, arguments: Sequence[str]) -> int:
    """Run the node; return 1 if it ends by itself."""
    _end_with_parent()
    groups = control_groups.make(directory.name)
    parent = os.getpid()

    def before() -> None:
        die_with(parent)
        control_groups.enter(groups)

    try:
        process = subprocess.Popen(_command(directory, arguments), preexec_fn=before)
        print(f"pid {_only_child(process)}", flush=True)
        process.wait()
    finally:
        process.kill()
        process.wait()
        control_groups.remove(control_groups.named(directory.name))
    return 1


def _command(directory: Path, arguments: Sequence[str]) -> list[str]:
    isolated = [f"--{kind}" for kind in _ISOLATED]
    machine = [sys.executable, "-m", "testbed.kubernetes.machine", str(directory), *arguments]
    return ["unshare", *isolated, "--fork", "--kill-child=KILL", "--mount-proc", *machine]


def _end_with_parent() -> None:
    """End by SIGTERM when the parent dies. Until now it was SIGKILL, so this parent has not died before."""
    parent = os.getppid()
    signal.signal(signal.SIGTERM, _ended)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("the parent has died")


def _ended(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def _only_child(process: subprocess.Popen[bytes]) -> int:
    """The first process of the node, by its number here."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        if found := children.read_text().split():
            return int(found[0])
    raise RuntimeError("the node has ended")


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
    except SystemExit as end:
        if not end.code:
            remove(Path(sys.argv[1]))
        raise
