"""docs/run/monitoring.md describes log lines as JSON: their keys, their loggers, and events with their fields."""

import ast
import dataclasses
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from appliance.engine.control.assignment import CopySums
from appliance.runtime.log import JsonFormatter
from tests.unit.runtime.test_log import raised, record

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "run" / "monitoring.md").read_text().partition("## Logs as JSON")[2]
SOURCES = [path for path in (ROOT / "appliance").rglob("*.py") if "log = logging.getLogger(" in path.read_text()]
LEVELS = ("info", "warning", "error", "exception")
COPIED = {field.name for field in dataclasses.fields(CopySums)}


class Event(NamedTuple):
    """A log line that the code can write; ``message`` may be the first part of it."""

    logger: str
    level: str
    message: str
    fields: frozenset[str]


def logger(path: Path) -> str:
    found = re.search(r'^log = logging.getLogger\("appliance\.(\w+)"\)', path.read_text(), re.MULTILINE)
    assert found, path
    return found[1]


def beginning(node: ast.expr) -> str:
    """The text of a constant, or the first part of an f-string."""
    first = node.values[0] if isinstance(node, ast.JoinedStr) else node
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def keys(node: ast.AST) -> frozenset[str]:
    dictionaries = [inner for inner in ast.walk(node) if isinstance(inner, ast.Dict)]
    return frozenset(beginning(key) for inner in dictionaries for key in inner.keys if key)


def of_calls(path: Path) -> Iterator[Event]:
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                match node:
                    case ast.Call(ast.Attribute(ast.Name("log"), level), [message, *_]) if level in LEVELS:
                        yield Event(logger(path), level, beginning(message), keys(function))


def of_outages(path: Path) -> Iterator[Event]:
    """The lines of outage logs: those of ``_LINES`` when an outage begins, and another when it ends."""
    tree = ast.parse(path.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "OutageLog"]
    lines = {
        ast.unparse(node.targets[0]): [beginning(text) for text in texts(node.value)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
    }
    for kind, name, cured in (call.args for call in calls):
        yield Event("tunnel", "info", beginning(cured), frozenset({beginning(kind)}))
        for line in lines[ast.unparse(name)]:
            yield Event("tunnel", "warning", line, frozenset({beginning(kind), "cause"}))


def texts(node: ast.AST) -> Iterator[ast.expr]:
    for line in ast.walk(node):
        match line:
            case ast.Tuple([ast.Name(), text]):
                yield text


@functools.cache
def events() -> list[Event]:
    """All lines that the code can write; read when a test asks, because each worker of pytest imports this file."""
    return [event for path in SOURCES for event in (*of_calls(path), *of_outages(path))]


def test_every_documented_event_exists_with_its_level_logger_and_fields() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| (\w+) \| (.*?) ?\| ", DOCUMENT, re.MULTILINE)
    assert len(rows) > 20
    for message, level, name, fields in rows:
        found = [event for event in events() if event[:2] == (name, level) and event.message.startswith(message)]
        assert found, message
        assert set(re.findall(r"`(\w+)`", fields)) <= frozenset.union(*(event.fields for event in found)) | (
            COPIED if message == "copied" else set()
        ), message


def test_the_documented_loggers_are_those_of_the_code() -> None:
    (row,) = re.findall(r"^\| `logger` \| (.*?);", DOCUMENT, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", row)) == {logger(path) for path in SOURCES}


def test_the_documented_keys_are_those_of_a_line() -> None:
    documented = re.findall(r"^\| `(\w+)` \| [^|]* \|$", DOCUMENT, re.MULTILINE)
    line = json.loads(JsonFormatter(traceback=True).format(record(exc_info=raised(ValueError("odd")))))
    assert documented == list(line)


def test_the_documented_example_is_a_line() -> None:
    (example,) = re.findall(r"^```json\n(.*)\n```$", DOCUMENT, re.MULTILINE)
    assert example == JsonFormatter().format(record(fields={"peer": "10.0.0.7", "bytes": 4711}))
