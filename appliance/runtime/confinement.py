"""What a process gives up at its start, because it holds secrets.

Its memory gets into no core dump, and no other process of its user reads it, or its environment (PR_SET_DUMPABLE).
Forks inherit both; another program, such as Java, inherits the limit of core dumps alone.
"""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def keep_memory_private() -> None:
    """No core dump, and no look into this process by others of its user."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
