"""The setup of a measurement: options, the machine, and the versions of all programs."""

import argparse
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from appliance.errors import ToolMissing
from bench.lib.clusters import HEAP_MEGABYTES, broker_options
from testbed.jars import KAFKA_VERSION, java

_GIGABYTE = 1e9
_PACKAGES = ("pyspark", "confluent-kafka", "aiokafka")


def setup(arguments: Sequence[str], heap_megabytes: int = HEAP_MEGABYTES) -> Mapping[str, str]:
    """The facts that are needed to repeat and compare a measurement, by subject; the heap is the brokers'."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIGABYTE
    cores = len(os.sched_getaffinity(0))
    packages = [f"{name} {metadata.version(name)}" for name in _PACKAGES]
    return {
        "command": shlex.join(["bin/bench", *arguments]),
        "machine": f"{cores} cores ({_processor()}), {memory:.0f} GB memory, Linux {platform.release()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *packages]),
        "Java": f"Kafka and MirrorMaker {KAFKA_VERSION}, {_java_version()}",
        "brokers": f"one for each cluster, on loopback, in plain text: {' '.join(broker_options(heap_megabytes))}",
    }


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def _java_version() -> str:
    """The first line of ``java -version``."""
    try:
        said = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True)
    except (ToolMissing, OSError, subprocess.CalledProcessError):
        return "no Java"
    return said.stderr.partition("\n")[0]


def few(text: str) -> int:
    """A whole number from 0 to 100.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) > 100:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 100, got {text}")
    return int(text)


def positive(text: str) -> int:
    """A whole number of at least 1.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text}")
    return int(text)
