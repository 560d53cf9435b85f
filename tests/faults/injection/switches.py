"""Switches with which the suite controls a replicator: environment variables and files.

Python imports ``sitecustomize`` at its start, if a directory of PYTHONPATH has one; Spark hands PYTHONPATH on to its
Python workers. Ours has one, which patches the process before any of the appliance is imported.
"""

import enum
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults.injection import double

_DIRECTORY = "FAULTS_DIRECTORY"
_MUTATION = "FAULTS_MUTATION"
_HOST = "FAULTS_HOST"
_CHECKOUT = Path(__file__).parents[3]
_SITE = Path(__file__).parent / "site"


class CrashPoint(enum.Enum):
    """The points of a transaction at which a lane's process can die."""

    FETCHED = "after fetch"
    PARTITIONS_ADDED = "after AddPartitions"
    PARTLY_PRODUCED = "after part of the Produces"
    POSITIONS_PRODUCED = "after positions"
    COMMIT_SENT = "after EndTxn is sent but not answered"
    COMMITTED = "after commit, before the task returns"


@dataclass(frozen=True, slots=True)
class Host:
    """A machine of a process's own: its name, and the loopback address that its connections come from."""

    name: str
    address: str


def injected(directory: Path, mutation: str, host: Host) -> Mapping[str, str]:
    """The environment of a process on a host, which files in ``directory`` can crash; with the mutation, if any."""
    paths = [str(_SITE), str(_CHECKOUT), os.environ.get("PYTHONPATH", "")]
    own = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), _DIRECTORY: str(directory), _MUTATION: mutation}
    return {**os.environ, **own, _HOST: f"{host.name} {host.address}"}


def arm(directory: Path, point: CrashPoint, note: Path | None = None) -> Path:
    """Make a file: the next process that comes to ``point`` removes it and dies.

    With ``note`` it leaves a double of itself behind, whose process id ``note`` will hold.
    """
    file = _crash_file(directory, point)
    unnoticed = file.with_suffix(".new")
    unnoticed.write_text(str(note) if note else "")
    return unnoticed.rename(file)


def armed(point: CrashPoint) -> bool:
    """True if the next process that reaches the point should die."""
    return _crash_file(Path(os.environ[_DIRECTORY]), point).exists()


def reached(point: CrashPoint) -> None:
    """Die here, if that is asked for: by SIGKILL, as when memory runs out."""
    file = _crash_file(Path(os.environ[_DIRECTORY]), point)
    try:
        note = file.read_text()
        file.unlink()
    except FileNotFoundError:
        return
    if not note:
        os.kill(os.getpid(), signal.SIGKILL)
    double.leave_behind(Path(note))


def mutation() -> str:
    """The mutation that this process is asked to have; empty for none."""
    return os.environ.get(_MUTATION, "")


def host() -> Host:
    """The host of this process."""
    return Host(*os.environ[_HOST].split())


def _crash_file(directory: Path, point: CrashPoint) -> Path:
    return directory / f"crash-{point.name.lower()}"
