"""Commands that pages show are those of the program, and outputs those of the code; the drills' are compared where
they run."""

import io
import json
import re
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from appliance import command_line
from appliance.runtime.log import JsonFormatter
from appliance.settings.variables import BY_NAME
from demo.report import DemoReport
from testbed.comparison import Differences
from tests.unit.runtime.test_log import record

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PROGRAM = r"(?:bin/appliance|docker-compose exec replicator appliance|docker exec CONTAINER appliance)"
BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```|((?:^    .*\n)+)", re.MULTILINE | re.DOTALL)
STANDS_FOR = {"N": "0", "OFFSET": "1", "END": "1"}


def commands(page: Path) -> list[str]:
    """The command lines in the blocks of a page; on the pages of the night also those with options within sentences."""
    text = page.read_text()
    blocks = ["".join(filter(None, match.groups())).replace("\\\n", " ") for match in BLOCK.finditer(text)]
    found = [line for block in blocks for line in re.findall(rf"^ *{PROGRAM} (.*)$", block, re.MULTILINE)]
    return found + (re.findall(rf"`{PROGRAM} ([^`]+ --[^`]+)`", text) if page.parent.name == "night" else [])


@pytest.mark.parametrize("page", [*filter(commands, PAGES)], ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_that_a_page_shows_is_one_that_the_program_takes(page: Path) -> None:
    for command in commands(page):
        words = [STANDS_FOR.get(word, word) for word in shlex.split(command, comments=True)]
        parser = command_line.parser(words[0], command_line.command(words[0]))
        parser.parse_args(words)


def test_each_setting_that_a_page_shows_is_one_that_is_accepted() -> None:
    lines = [each for page in PAGES for each in re.findall(r"^export (\w+)='(.*)'$", page.read_text(), re.MULTILINE)]
    of_a_link = [(name, text) for name, text in lines if not name.startswith(("ORANGE_", "GRAPE_", "LEMON_"))]
    assert len(of_a_link) > 5
    for name, text in of_a_link:
        BY_NAME[name].parse(text)


def test_case_1480_the_table_of_the_readme_is_the_one_that_the_demo_prints() -> None:
    # It was a column wider, of an older demo.
    report = DemoReport(200_000, 99_905_956, 1, 39_504.0, 29.0, 51.0, 56.0, Differences())
    rows = re.findall(r"^│.*│$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 10
    stream = io.StringIO()
    Console(file=stream, width=80).print(report.as_table())
    assert rows == [line for line in stream.getvalue().splitlines() if line.startswith("│")]


def test_the_line_of_the_log_that_is_shown_has_the_form_of_the_logs() -> None:
    [shown] = re.findall(r"^```json\n(.*)\n```", (DOCS / "run" / "monitoring.md").read_text(), re.MULTILINE)
    written = JsonFormatter().format(record(fields={"peer": "10.0.0.7", "bytes": 4711}))
    assert json.loads(shown) | {"time": ""} == json.loads(written) | {"time": ""}
    assert list(json.loads(shown)) == list(json.loads(written))
