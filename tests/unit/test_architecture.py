"""Arrows of imports go one way: from right to left of the line in ``appliance/__init__.py``."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import appliance

ROOT = Path(appliance.__file__).parent

FLOORS = (
    {"errors", "owned", "version"},
    {"settings", "materials"},
    {"listening"},
    {"log", "http", "endless", "render", "tunnel", "dns", "kafka"},
    {"gateway", "replicator"},
    {"verify", "console", "doctor"},
    {"cli", "prepare"},
    {"demo"},
)
"""A room may import rooms of lower floors, and itself; never a neighbour on its own floor."""

MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def floor(name: str) -> int:
    (found,) = (number for number, rooms in enumerate(FLOORS) if name in rooms)
    return found


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "appliance" else []
            yield from names or [node.module or ""]


def our_rooms(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(path) if name.startswith("appliance.")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_itself_and_lower_floors(path: Path) -> None:
    own = room(path)
    above = {other for other in our_rooms(path) - {own} if floor(other) >= floor(own)}
    assert not above


def test_pyspark_is_known_in_three_files() -> None:
    knowing = {
        str(path.relative_to(ROOT)) for path in MODULES if any(n.split(".")[0] == "pyspark" for n in imported(path))
    }
    assert knowing == {"replicator/spark.py", "replicator/gateway.py", "replicator/daemon.py"}


def test_kafka_clients_of_others_are_for_the_demo_alone() -> None:
    knowing = {room(path) for path in MODULES if any(name.startswith("confluent_kafka") for name in imported(path))}
    assert knowing <= {"demo"}


def test_the_bills_library_is_for_the_bill_alone() -> None:
    foreign = ("cyclonedx", "packageurl")
    assert {room(path) for path in MODULES if any(name.startswith(foreign) for name in imported(path))} == {"materials"}


def test_asyncssh_is_loaded_only_where_an_ssh_server_carries_the_tunnel() -> None:
    within = {path for path in MODULES if path.is_relative_to(ROOT / "tunnel" / "ssh")}
    assert not [path for path in MODULES if path not in within and "asyncssh" in imported(path)]
    users = {path for path in MODULES for name in imported(path) if name.startswith("appliance.tunnel.ssh")} - within
    assert {str(path.relative_to(ROOT)) for path in users} == {"tunnel/dialler.py"}
    code = "import sys, appliance.cli, appliance.gateway.destination_side; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent).returncode == 0


PURE = [
    "settings/target.py",
    "render/compose.py",
    "render/container.py",
    "render/published.py",
    "render/firewall.py",
    "render/differences.py",
    "kafka/wire.py",
    "kafka/sasl.py",
    "kafka/versions.py",
    "kafka/metadata.py",
    "kafka/batch.py",
    "kafka/committed.py",
    "kafka/records.py",
    "kafka/outgoing.py",
    "replicator/naming.py",
    "replicator/plan.py",
    "replicator/position.py",
    "replicator/portion.py",
    "replicator/states.py",
    "replicator/seating.py",
    "dns/answers.py",
    "dns/question.py",
    "tunnel/connect.py",
    "tunnel/access.py",
    "tunnel/ssh/windows.py",
    "gateway/brokers.py",
    "gateway/health.py",
    "gateway/metrics.py",
    "console/facts.py",
    "console/compose.py",
    "console/snapshot.py",
    "console/findings.py",
    "console/document.py",
    "console/health.py",
    "console/metrics.py",
    "verify/stream.py",
    "verify/comparison.py",
    "verify/alignment.py",
    "verify/newest.py",
    "verify/verdict.py",
    "doctor/step.py",
    "doctor/report.py",
]
IO = {"asyncio", "socket", "ssl", "time", "logging", "threading", "subprocess", "pyspark"}


@pytest.mark.parametrize("name", PURE)
def test_what_decides_neither_waits_nor_looks_at_the_clock(name: str) -> None:
    assert not {module.split(".")[0] for module in imported(ROOT / name)} & IO


def test_no_module_of_ours_imports_in_a_circle() -> None:
    graph = {path: set() for path in MODULES}
    by_name = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in MODULES}
    for path in MODULES:
        graph[path] = {by_name[name] for name in imported(path) if name in by_name}
    while leaves := [path for path, targets in graph.items() if not targets]:
        for leaf in leaves:
            del graph[leaf]
        for targets in graph.values():
            targets.difference_update(leaves)
    assert not [str(path.relative_to(ROOT)) for path in graph]
