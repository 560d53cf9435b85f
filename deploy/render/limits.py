"""The limits of a container: memory in MiB, beyond which the kernel kills it, and processes with threads."""

import math

from appliance.settings.values import EngineSettings

_TUNNEL = 348
"""Memory of an end of the tunnel without connections, in MiB: 48 to run, 192 for the data of jammed connections, here
and in the kernel (``tunnel.jams``), and 108 for data that comes before a jam is noticed. Deriving its keys takes 128,
before the first connection comes."""

_CONNECTIONS_OF_A_MEBIBYTE = 25
_TUNNEL_LEAST = 512

_SSH_WINDOWS, _SSH_CONNECTIONS_OF_A_MEBIBYTE = 128, 16
"""Bytes in the windows of an SSH connection (``tunnel.ssh.windows``): TOTAL, and at least LEAST for each connection."""

CONTROL_CENTER_MEMORY = 384
"""Memory of the control center in MiB: 72 at rest and at most 116 with a command beside it, for a topic of four
partitions. The rest is for a snapshot of thousands of partitions, here and in the command."""

_BESIDE_THE_HEAP = 640
_TASK_MEMORY = 192
_AUDIT_MEMORY = 128
_ORDER = 256


def tunnel_memory(connections_max: int, *, ssh_servers: int = 0) -> int:
    """The memory of an end of the tunnel with that many connections, enough for any behaviour of a peer.

    ``ssh_servers`` are those through which the end carries them; each has an SSH connection with windows of its own.
    """
    tunnel = max(_TUNNEL_LEAST, _TUNNEL + math.ceil(connections_max / _CONNECTIONS_OF_A_MEBIBYTE))
    least = math.ceil(connections_max / _SSH_CONNECTIONS_OF_A_MEBIBYTE) if ssh_servers else 0
    return tunnel + ssh_servers * _SSH_WINDOWS + least


def replicator_memory(engine: EngineSettings, cores: int, *, audits: bool = False) -> int:
    """Java's heap and its other memory, the driver's Python, and the buffers of each task's Python.

    ``audits`` is true if the driver writes the audit table.
    """
    beside = _BESIDE_THE_HEAP + audits * _AUDIT_MEMORY
    return _mebibytes(engine.spark_driver_memory) + beside + _TASK_MEMORY * (engine.tasks or cores)


def order_memory(clusters: int) -> int:
    """The memory of the process of an order, which reads so many clusters."""
    return _ORDER + _TASK_MEMORY * clusters


def _mebibytes(size: str) -> int:
    return int(size[:-1]) * (1024 if size[-1] in "gG" else 1)


TUNNEL = 128
"""Processes and threads of an end of the tunnel: its own, up to 32 threads that look up names, and as many of a command
beside it."""

_SPARK_PROCESSES = 384
"""Two JVMs, one of which is ending, with 72 threads each on two cores; Python's driver, and two commands."""

_CORE_THREADS = 4
"""Java's threads for each core: one in some thread pools, and fewer in the others."""

_TASK_PROCESSES = 48
"""For each task: three threads in Java, and a process with up to 32 threads that look up names."""


def replicator_processes(engine: EngineSettings, cores: int) -> int:
    """Processes and threads of Java, the driver's Python, and each task: some five times their number at rest."""
    return _SPARK_PROCESSES + _CORE_THREADS * cores + _TASK_PROCESSES * (engine.tasks or cores)
