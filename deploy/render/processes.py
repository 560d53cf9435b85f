"""How many processes and threads a container may have at once; the kernel refuses it more."""

from appliance.settings.values import EngineSettings

TUNNEL = 128
"""An end of the tunnel: its process, up to 32 threads that look names up, and as many of a command beside it."""

_SPARK = 384
"""Two Java machines, one of which is ending, with 72 threads each at two cores; Python's driver, and two commands."""

_CORE = 4
"""Java has one thread for each core in some of its pools, and fewer in the others."""

_TASK = 48
"""Three threads in Java, and a process with up to 32 threads that look names up."""


def replicator_processes(engine: EngineSettings, cores: int) -> int:
    """Room for Java, the driver's Python, and the process of each task; some five times what they have at rest."""
    return _SPARK + _CORE * cores + _TASK * (engine.tasks or cores)
