"""Outputs that pages show are those of the code; the drills' are compared where they run."""

import io
import re
from pathlib import Path

from rich.console import Console

from demo.report import DemoReport
from testbed.comparison import Differences

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_readme_is_the_one_that_the_demo_prints() -> None:
    report = DemoReport(200_000, 99_905_956, 1, 39_504.0, 29.0, 51.0, 56.0, Differences())
    rows = re.findall(r"^│.*│$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 10
    stream = io.StringIO()
    Console(file=stream, width=80).print(report.as_table())
    assert rows == [line for line in stream.getvalue().splitlines() if line.startswith("│")]
