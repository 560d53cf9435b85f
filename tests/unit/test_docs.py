"""The documentation matches the checkout."""

import re
from pathlib import Path

import pytest

from appliance.command_table import COMMANDS
from appliance.link.model.copy_states import COPY
from appliance.link.model.states import LANE
from appliance.metrics import METRICS
from appliance.settings.variables import NAMES
from deploy.docs.states import drawing
from tests.suites import SUITES

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE)
}


BENCHES = {path.stem for path in (ROOT / "bench" / "cases").glob("*.py")} | {"plot"}


def plain(markdown: str) -> str:
    """The text without its links and its code marks."""
    return re.sub(r"\[(.*?)\]\(.*?\)", r"\1", markdown).replace("`", "")


def words(pattern: str, text: str) -> set[str]:
    return set(re.findall(pattern, text))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_that_is_cited_exists(path: Path) -> None:
    assert words(r"`(test_\w+)`", path.read_text()) <= TESTS


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_is_named_exists(path: Path) -> None:
    named = words(
        r"`((?:appliance|deploy|testbed|demo|docs|bin|tests|bench|monitoring)/[\w/.-]*\w)(?: [^`]*)?`", path.read_text()
    )
    linked = words(r"\]\(([\w/.-]+)\)", path.read_text())
    missing = {name for name in named if not (ROOT / name).exists()}
    assert not missing | {name for name in linked if not (path.parent / name).exists()}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_suite_that_is_named_exists(path: Path) -> None:
    of_faults = {"seed", "soak"}
    named = words(r"bin/test --([a-z]+)", path.read_text()) - of_faults
    assert named <= {suite.name for suite in SUITES} | {"help", "release", "stalls"}


def test_the_tour_names_every_suite() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert {suite.flag for suite in SUITES} <= words(r"bin/test (--[a-z]+)", text)


def test_the_files_of_ten_changes_exist() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().split("## Ten changes", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| [^|]+ \| (.*`.*) \|$", table, re.MULTILINE)
    assert len(rows) == 10
    missing = [path for row in rows for path in re.findall(r"`([^`]+)`", row) if not (ROOT / path).exists()]
    assert missing == []


def test_every_decision_is_in_their_table() -> None:
    decisions = ROOT / "docs" / "why" / "decisions"
    listed = words(r"\]\(([\w-]+\.md)\)", (decisions / "README.md").read_text())
    assert listed == {path.name for path in decisions.glob("*.md")} - {"README.md"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_variable_that_is_named_exists(path: Path) -> None:
    known = set(NAMES)
    looks_ours = r"`((?:SOURCE|DESTINATION|REPLICA|TUNNEL|DNS|ON|SPARK|CONSOLE|LOG|COMMIT|SLICE)_[A-Z_]+)(?:=[^`]*)?`"
    assert words(looks_ours, path.read_text()) <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_metric_that_is_named_exists(path: Path) -> None:
    assert words(r"(kafka_(?:replicator|tunnel|order)_[a-z_]+)", path.read_text()) <= set(METRICS)


def test_the_states_of_a_lane_are_drawn_from_its_table() -> None:
    assert drawing(LANE) in (ROOT / "docs" / "why" / "exactly-once.md").read_text()


def test_the_states_of_a_copy_are_drawn_from_its_table() -> None:
    assert drawing(COPY) in (ROOT / "docs" / "night" / "failover.md").read_text()


def tables(path: Path) -> list[list[list[str]]]:
    """The tables of a page: their rows, without the lines under the heads, as cells."""
    found = re.findall(r"(?:^\|.*\|\n)+", path.read_text(), re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if "|---" not in line]
        for table in found
    ]


def test_each_feature_of_the_comparison_is_shown_by_a_test_or_a_command_or_is_none_of_ours() -> None:
    *compared, shown = tables(ROOT / "docs" / "why" / "comparison.md")
    features = [row[0] for table in compared for row in table[1:]]
    assert [row[0] for row in shown[1:]] == features
    assert all(len(row) == len(table[0]) for table in compared for row in table)
    figures = {
        row[0]: words(r"[0-9.,]{2,}", " ".join(row[1:3])) for row in compared[-1] if row[0].startswith(("rate", "lat"))
    }
    measured = words(r"[0-9.,]{2,}", (ROOT / "docs" / "why" / "performance.md").read_text())
    assert all(numbers and numbers <= measured for numbers in figures.values())
    for feature, evidence in shown[1:]:
        assert evidence == "none" or re.fullmatch(r"`[^`]+`(?:, `[^`]+`)*", evidence), feature


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_is_named_exists(path: Path) -> None:
    text = path.read_text()
    assert words(r"bin/appliance ([a-z-]+)\b", text) <= COMMANDS.keys()
    assert words(r"bin/bench ([a-z]+)\b", text) <= BENCHES
