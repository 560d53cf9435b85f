"""The setup of a measurement: options, the machine, and the versions of all programs."""

import argparse
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers between these."""
    bounds = f"from {least} on" if most is None else f"from {least} to {most}"

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text}")
        return int(text)

    return parse


few, positive = whole(0, 100), whole(1)


def add_names(parser: argparse.ArgumentParser, name: str, names: Iterable[str], default: Iterable[str]) -> None:
    """Add an option with some of these names."""
    choices = list(names)
    parser.add_argument(
        name, nargs="+", choices=choices, default=list(default), metavar="NAME", help=", ".join(choices)
    )


def add_number(
    parser: argparse.ArgumentParser,
    name: str,
    default: float | Sequence[int],
    text: str,
    *,
    metavar: str = "",
    kind: Callable[[str], float] | None = None,
) -> None:
    """Add an option with a number, or with several; positive whole ones, or seconds if the default has decimals."""
    several = isinstance(default, Sequence)
    decimals = isinstance(default, float)
    shown = " ".join(map(str, default)) if isinstance(default, Sequence) else str(default)
    parser.add_argument(
        name,
        type=kind or (float if decimals else positive),
        nargs="+" if several else None,
        default=default,
        metavar=metavar or ("S" if decimals else "N"),
        help=f"{text} ({shown.removesuffix('.0')})",
    )
