"""Folders import only lower floors of the table in docs/why/architecture.md, and values do no IO."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPS = ("appliance", "deploy", "testbed", "demo", "bench")
DOCUMENT = (ROOT / "docs" / "why" / "architecture.md").read_text()
IO = {"asyncio", "socket", "ssl", "time", "logging", "threading", "subprocess", "pyspark"}
IN_THE_IMAGE = "appliance"
ENTRANCES = tuple(
    Path("appliance", f"{name}.py") for name in ("cli", "command_line", "command_table", "replicate", "client")
)
"""Above all floors."""
VALUES = (
    *("appliance/kafka/protocol", "appliance/kafka/records", "appliance/kafka/records/arrays"),
    *("appliance/dns/messages", "deploy/render", "deploy/helm", "deploy/materials", "deploy/monitoring"),
)
"""Folders without IO, beside those called ``model``."""

FILES = sorted(path.relative_to(ROOT) for top in TOPS for path in (ROOT / top).rglob("*.py"))
INITS = [path for path in FILES if path.name == "__init__.py"]


def floors() -> dict[str, int]:
    """The floor of each folder of the table; that of the files beside the folders is 0."""
    section = DOCUMENT.split("## Floors", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\d) \| (.*?) \|", section, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(8, -1, -1))
    return {folder: int(number) for number, names in rows for folder in re.findall(r"`(\w+)`", names)}


def house_of(path: Path) -> str:
    """The folder below ``appliance`` of a file; empty for a file beside the folders."""
    return path.parts[1] if len(path.parts) > 2 else ""


def names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"appliance(\.\w+)+:\w+", str(node.value)):
            yield str(node.value).replace(":", ".")  # imported by this name, once it is needed


def file_of(name: str) -> Path | None:
    """Our file that defines a dotted name, or None."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        stem = Path(*parts[:length])
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if (ROOT / path).exists():
                return path if parts[0] in TOPS else None
    return None


@functools.cache
def imported(path: Path) -> frozenset[Path]:
    return frozenset({found for name in names(path) if (found := file_of(name))} - {path})


@functools.cache
def foreign(path: Path) -> frozenset[str]:
    return frozenset(name.split(".")[0] for name in names(path))


def arrows() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {folder_of(path): set() for path in FILES}
    for path in FILES:
        found[folder_of(path)] |= {folder_of(target) for target in imported(path)} - {folder_of(path)}
    return found


def folder_of(path: Path) -> str:
    return str(path) if path in ENTRANCES else str(path.parent)


def test_every_folder_has_a_floor() -> None:
    assert floors().keys() == {house_of(path) for path in FILES if path.parts[0] == "appliance"} - {""}


def test_a_folder_imports_lower_floors_only() -> None:
    floor = {"": -1} | floors()
    inside = [path for path in FILES if path.parts[0] == "appliance" and path not in ENTRANCES]
    arrows = {(path, target) for path in inside for target in imported(path) if house_of(path) != house_of(target)}
    assert not [
        (str(path), str(target))
        for path, target in arrows
        if target in ENTRANCES or floor[house_of(path)] <= floor[house_of(target)]
    ]


def test_arrows_between_folders_make_no_circle() -> None:
    graph = arrows()
    while leaves := [folder for folder, targets in graph.items() if not targets]:
        for leaf in leaves:
            del graph[leaf]
        for targets in graph.values():
            targets.difference_update(leaves)
    assert not graph


def test_values_neither_wait_nor_read_the_clock() -> None:
    values = [path for path in FILES if path.parent.name == "model" or str(path.parent) in VALUES]
    assert {path.parent.name for path in values} >= {"model", "records", "messages"}
    assert not {(str(path), module) for path in values for module in foreign(path) & IO}
    assert not [str(path) for path in values if Path("appliance/clock.py") in imported(path)]


def test_the_time_is_read_in_one_file() -> None:
    reading = {str(path) for path in FILES if path.parts[0] == "appliance" and "time" in foreign(path)}
    others = {"appliance/spark/session.py", "appliance/console/watch.py"}  # a pause of a thread; processor time
    assert reading == {"appliance/clock.py"} | others


def test_the_image_imports_nothing_that_it_does_not_hold() -> None:
    inside = [path for path in FILES if path.parts[0] == IN_THE_IMAGE]
    assert not {str(target) for path in inside for target in imported(path) if target.parts[0] != IN_THE_IMAGE}


def test_no_file_imports_in_a_circle() -> None:
    graph = {path: set(imported(path)) for path in FILES}
    while leaves := [path for path, targets in graph.items() if not targets]:
        for leaf in leaves:
            del graph[leaf]
        for targets in graph.values():
            targets.difference_update(leaves)
    assert not graph


@pytest.mark.parametrize("path", INITS, ids=lambda path: str(path.parent))
def test_the_docstring_of_a_folder_names_its_files(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse((ROOT / path).read_text())) or ""
    inside = {other.stem for other in FILES if other.parent == path.parent} - {"__init__", "__main__"}
    folders = {init.parent.name for init in INITS if init.parent.parent == path.parent}
    items = re.findall(r"^- ([^:]*):", docstring, re.MULTILINE)
    assert {name for item in items for name in re.findall(r"``(\w+)``", item)} == inside | folders


def test_pyspark_is_known_in_five_files() -> None:
    knowing = {path.name for path in FILES if "pyspark" in foreign(path)}
    sql = {"plan.py", "catalyst.py"}
    assert knowing == {"session.py", "py4j_gateway.py", "daemon.py"} | sql


def test_rich_draws_in_one_file_where_all_text_is_text() -> None:
    drawing = {str(path) for path in FILES for name in names(path) if re.match(r"rich\.(?!live\.|progress\.)", name)}
    assert drawing == {"appliance/tables.py"}


def test_commands_print_in_one_file_which_escapes_what_does_not_print() -> None:
    ours = [path for path in FILES if path.parts[0] in ("appliance", "demo") or path.parts[:2] == ("deploy", "prepare")]
    printing = {
        str(path)
        for path in ours
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Name) and node.id == "print" and isinstance(node.ctx, ast.Load)
    }
    assert printing == {"appliance/output.py"}


@pytest.mark.parametrize(
    ("libraries", "tops"),
    [
        ({"confluent_kafka"}, {"testbed", "demo", "bench"}),
        ({"cyclonedx", "packageurl"}, {"deploy"}),
    ],
    ids=["Kafka clients of others", "the bill of materials"],
)
def test_packages_that_the_image_lacks_are_not_imported_in_it(libraries: set[str], tops: set[str]) -> None:
    assert {path.parts[0] for path in FILES if foreign(path) & libraries} <= tops


def test_asyncssh_is_loaded_only_where_an_ssh_server_carries_the_tunnel() -> None:
    ssh = Path("appliance/tunnel/ssh")
    outside = [path for path in FILES if path.parent != ssh]
    assert not [path for path in outside if "asyncssh" in foreign(path)]
    users = {str(path) for path in outside if any(target.parent == ssh for target in imported(path))}
    assert users == {"appliance/tunnel/dialler.py"}
    code = "import sys, appliance.cli, appliance.gateway.command; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
