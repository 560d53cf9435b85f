"""Linux's data about a process and its descendants (proc(5))."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _TIMES = 1, slice(11, 15)
"""Indexes of stat's fields, counted from the field after the command's name."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process now: the processor time of itself and of its reaped children, in seconds."""

    pid: int
    parent: int
    command: str
    cpu_seconds: float

    @property
    def is_java(self) -> bool:
        """True for a JVM."""
        return self.command == "java"


def processes() -> list[Process]:
    """All processes of this machine."""
    ticks_a_second = os.sysconf("SC_CLK_TCK")
    stats = (_text(entry / "stat") for entry in _PROC.iterdir() if entry.name.isdigit())
    return [parse_stat(stat, ticks_a_second) for stat in stats if stat]


def parse_stat(stat: str, ticks_a_second: int) -> Process:
    """Parse ``/proc/<pid>/stat``. The command's name is in brackets, and may itself contain brackets."""
    pid, _, rest = stat.partition(" (")
    command, _, fields = rest.rpartition(") ")
    values = fields.split()
    ticks = sum(map(int, values[_TIMES]))
    return Process(int(pid), int(values[_PARENT]), command, ticks / ticks_a_second)


def family(root: int, everybody: Iterable[Process]) -> list[Process]:
    """The process ``root`` and its descendants."""
    children: dict[int, list[Process]] = {}
    members = []
    for process in everybody:
        children.setdefault(process.parent, []).append(process)
        members += [process] if process.pid == root else []
    for member in members:
        members += children.get(member.pid, ())
    return members


def busy_seconds(pid: int) -> float:
    """The processor time of the process and its descendants."""
    return sum(process.cpu_seconds for process in family(pid, processes()))


@dataclass(frozen=True, slots=True)
class Memory:
    """A process's memory in bytes: resident now, the highest ever, and its share now.

    ``share`` divides each page among the processes that have it.
    """

    resident: int
    highest: int
    share: int

    @property
    def highest_share(self) -> int:
        """An upper bound of its share at any time, if only its own pages have grown and shrunk."""
        return self.share + self.highest - self.resident


def memory(pid: int) -> Memory:
    """The memory of one of our processes; all 0 when it has ended."""
    sizes = parse_sizes(_text(_PROC / str(pid) / "status") + _text(_PROC / str(pid) / "smaps_rollup"))
    return Memory(*(sizes.get(name, 0) for name in ("VmRSS", "VmHWM", "Pss")))


def parse_sizes(lines: str) -> dict[str, int]:
    """The lines ``name: size kB`` of ``status`` or ``smaps_rollup``, in bytes by name, without other lines."""
    found = re.findall(r"^(\w+):\s+(\d+) kB$", lines, re.MULTILINE)
    return {name: int(kibibytes) * 1024 for name, kibibytes in found}


def _text(path: Path) -> str:
    """The file's text; empty when the process has ended meanwhile."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
