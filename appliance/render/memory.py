"""How much memory a container may take before the kernel ends it; all in MiB."""

from appliance.settings.values import EngineSettings

TUNNEL = 512
"""An end of the tunnel: 35 to run, 60 to derive its keys, and 0.75 for each connection whose both ways are jammed."""

_BESIDE_THE_HEAP = 640
_TASK = 192


def replicator_memory(engine: EngineSettings, cores: int) -> int:
    """The heap, what Java takes beside it, the driver's Python, and the buffers of each task's Python."""
    return _mebibytes(engine.spark_driver_memory) + _BESIDE_THE_HEAP + _TASK * (engine.tasks or cores)


def _mebibytes(size: str) -> int:
    return int(size[:-1]) * (1024 if size[-1] in "gG" else 1)
