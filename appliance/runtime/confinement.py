"""Limits that a process with secrets sets itself at its start.

Its memory gets into no core dump, and no other process of its user reads it, or its environment (PR_SET_DUMPABLE).
Forks inherit both; another program, such as Java, inherits the limit of core dumps alone.

The ends of the tunnel also give up files, by Landlock: they read what they still need, and write and execute nothing.
"""

import contextlib
import ctypes
import dataclasses
import os
import resource
import ssl
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import appliance

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of system calls, the same on every processor."""
_READ = 4 + 8
"""To read files, and to list folders (linux/landlock.h)."""
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/etc/resolv.conf", "/proc", "/dev")


def keep_memory_private() -> None:
    """No core dump, and no look into this process by others of its user."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def read_only(*settings: object) -> int:
    """Let this thread, and those that it starts, read the files that parts of the settings name, the system's and
    Python's, and use no others. A file's folder is read whole, because the file may be replaced. So is a folder with a
    symbolic link on a file's path, which may lead elsewhere later; not / and what lies in it, such as /var.

    Returns the version of the kernel's Landlock, 0 for none.
    """
    libc = ctypes.CDLL(None)
    version: int = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1) if sys.platform == "linux" else 0
    if version < 1:
        return 0
    # A bit for each right to files: 13, and one more in each of the versions 2, 3 and 5.
    rights = ctypes.c_uint64((1 << (13 + (version > 1) + (version > 2) + (version > 4))) - 1)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rights), ctypes.c_size_t(8), 0)
    authorities = ssl.get_default_verify_paths()
    others = (*_SYSTEM, sys.prefix, sys.base_prefix, appliance.__file__, authorities.cafile, authorities.capath)
    files = [file.absolute() for file in _files(settings)]
    links = (part.parent for file in files for part in file.parents if part.is_symlink() and len(part.parts) > 3)
    named = [*files, *links, *(Path(name) for name in others if name)]
    for place in {place for name in named for place in (name, name.resolve())}:
        with contextlib.suppress(OSError):
            at = os.open(place if place.is_dir() else place.parent, os.O_PATH | os.O_CLOEXEC)
            libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", _READ, at), 0)
            os.close(at)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    confined = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return version if confined else 0


def _files(value: object) -> Iterator[Path]:
    if isinstance(value, Path) and value != Path():
        yield value
    elif isinstance(value, tuple):
        yield from (file for part in value for file in _files(part))
    elif dataclasses.is_dataclass(value):
        yield from (file for field in dataclasses.fields(value) for file in _files(getattr(value, field.name)))
