"""The limits of a container: memory in MiB, past which the kernel ends it, and processes with threads."""

import math

from appliance.settings.values import EngineSettings

_TUNNEL = 348
"""An end of the tunnel without connections: 48 to run, 192 for what jammed ones may hold, here and in the kernel
(``tunnel.jams``), and 108 for what comes before that is seen. Its keys take 128, before the first connection comes."""

_CONNECTIONS_OF_A_MEBIBYTE = 25
_TUNNEL_LEAST = 512

_SSH_WINDOWS, _SSH_CONNECTIONS_OF_A_MEBIBYTE = 128, 16
"""Bytes in the windows of an SSH connection (``tunnel.ssh.windows``): TOTAL, and LEAST of each connection."""

_BESIDE_THE_HEAP = 640
_TASK_MEMORY = 192


def tunnel_memory(connections_max: int, *, by_ssh: bool = False) -> int:
    """The memory of an end of the tunnel with that many connections, for any behaviour of a peer.

    ``by_ssh``: it is the one that carries them through an SSH server.
    """
    tunnel = max(_TUNNEL_LEAST, _TUNNEL + math.ceil(connections_max / _CONNECTIONS_OF_A_MEBIBYTE))
    return tunnel + by_ssh * (_SSH_WINDOWS + math.ceil(connections_max / _SSH_CONNECTIONS_OF_A_MEBIBYTE))


def replicator_memory(engine: EngineSettings, cores: int) -> int:
    """The heap, what Java takes beside it, the driver's Python, and the buffers of each task's Python."""
    return _mebibytes(engine.spark_driver_memory) + _BESIDE_THE_HEAP + _TASK_MEMORY * (engine.tasks or cores)


def _mebibytes(size: str) -> int:
    return int(size[:-1]) * (1024 if size[-1] in "gG" else 1)


TUNNEL = 128
"""An end of the tunnel: its process, up to 32 threads that look names up, and as many of a command beside it."""

_SPARK_PROCESSES = 384
"""Two Java machines, one of which is ending, with 72 threads each at two cores; Python's driver, and two commands."""

_CORE_THREADS = 4
"""Java's threads for each core: one in some of its pools, and fewer in the others."""

_TASK_PROCESSES = 48
"""Three threads in Java, and a process with up to 32 threads that look names up."""


def replicator_processes(engine: EngineSettings, cores: int) -> int:
    """Room for Java, the driver's Python, and the process of each task; some five times what they have at rest."""
    return _SPARK_PROCESSES + _CORE_THREADS * cores + _TASK_PROCESSES * (engine.tasks or cores)
