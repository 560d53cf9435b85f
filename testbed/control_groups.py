"""Control groups: those of version 1 that a process makes below its own, one for each controller, and their end."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_PATIENCE_SECONDS = 5.0
_INHERITED = ("cpuset.cpus", "cpuset.mems")
"""Files of a new group that are empty at first, though no process can be in such a group."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A process's group of some controllers; ``options`` are those of their mount."""

    options: str
    path: str

    @property
    def folder(self) -> str:
        """The name of the controllers' directory below the root."""
        return self.options.rpartition("name=")[2]

    @property
    def directory(self) -> Path:
        """The group's directory."""
        return ROOT / self.folder / self.path.lstrip("/")


def own_groups() -> list[ControlGroup]:
    """The groups of this process.

    Raises:
        RuntimeError: this machine has control groups of version 2 only.
    """
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    groups = [ControlGroup(controllers, path) for _, controllers, path in lines if controllers]
    if not groups:
        raise RuntimeError("this node needs control groups of version 1: systemd.unified_cgroup_hierarchy=0")
    return [group for group in groups if (ROOT / group.folder).is_dir()]


def make(name: str) -> list[Path]:
    """New groups of this name; a process enters them by ``enter``."""
    made = named(name)
    for directory in made:
        directory.mkdir()
        for file in _INHERITED:
            if (directory / file).exists():
                (directory / file).write_text((directory.parent / file).read_text())
    return made


def named(name: str) -> list[Path]:
    """The directories of the groups of this name, made or not."""
    return [group.directory / name for group in own_groups()]


def enter(directories: list[Path]) -> None:
    """Move this process into the groups."""
    for directory in directories:
        (directory / "cgroup.procs").write_text(str(os.getpid()))


def remove(directories: Iterable[Path]) -> None:
    """Remove groups with those below, whose processes have ended or are ending: the kernel keeps them until then."""
    for directory in directories:
        for path, _, _ in os.walk(directory, topdown=False):
            _remove_when_empty(Path(path))


def _remove_when_empty(directory: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            directory.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)  # its last process is still dying
        else:
            return
