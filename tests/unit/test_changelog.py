"""The changelog: its sections are the versions, and each new or removed name stands in the newest."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence

import pytest

from appliance.version import VERSION
from tests.promises import promises
from tests.releases import RELEASED
from tests.support.releases import CHANGELOG, CHECKOUT, Section, last_release, sections

SECTIONS = sections(CHANGELOG.read_text())
LAST = json.loads(RELEASED.read_text())
Names = Mapping[str, Sequence[str]]


def unreleased() -> str:
    """The text above the section of the last release."""
    return CHANGELOG.read_text().partition(last_release().text)[0]


def unnamed(before: Names, now: Names, text: str) -> list[str]:
    """The names that were added or removed, and that a text does not name; of a new command its options need not."""
    return [name for kind in now for name in _changed(before[kind], now[kind]) if not _is_named(name, text)]


def _changed(before: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    for name in sorted({*before} ^ {*now}):
        words = name.split()
        above = [" ".join(words[:length]) for length in range(1, len(words))]
        if all(each in before and each in now for each in above):
            yield name


def _is_named(name: str, text: str) -> bool:
    """True if one entry has each word of the name in code, not only in a sentence."""
    entries = (" ".join(re.findall(r"`([^`]+)`", entry)) for entry in re.split(r"\n(?=[-#])", text))
    words = [re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])") for word in name.split()]
    return any(all(word.search(entry) for word in words) for entry in entries)


def test_the_newest_section_is_the_version_of_this_code() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert SECTIONS[0].version == VERSION == project["version"]


def test_the_versions_are_semantic_and_descend() -> None:
    numbers = [tuple(map(int, each.version.split("."))) for each in SECTIONS]
    assert all(len(each) == 3 for each in numbers)
    assert numbers == sorted(set(numbers), reverse=True)


@pytest.mark.parametrize("section", SECTIONS[1:], ids=lambda section: section.version)
def test_each_section_but_the_newest_has_a_date_and_a_commit(section: Section) -> None:
    assert re.match(rf"## \[{re.escape(section.version)}\] - \d{{4}}-\d{{2}}-\d{{2}}\n", section.text)
    assert section.commit


def test_the_kept_names_are_those_of_the_last_release_in_the_changelog() -> None:
    assert LAST["version"] == last_release().version


def test_each_new_or_removed_variable_command_option_and_metric_stands_in_the_changelog() -> None:
    assert unnamed(LAST, promises(), unreleased()) == []


def test_a_name_that_the_changelog_lacks_is_found() -> None:
    before = {"variables": ["A", "GONE"], "commands": ["status", "status --old"], "metrics": ["m_total"]}
    now = {
        "variables": ["A", "IMAGE", "NEW"],
        "commands": ["pack", "pack --to", "status", "status --json"],
        "metrics": ["m_total", "n_total"],
    }
    missing = ["GONE", "IMAGE", "NEW", "pack", "status --json", "status --old", "n_total"]
    assert unnamed(before, now, "`IMAGES`, `MY_IMAGE` and `--jsons`") == missing
    assert unnamed(before, now, "`GONE`, `IMAGE`, `NEW`, `pack`, `status` with `--json`; no `--old`; `n_total`") == []


def test_case_1428_a_name_is_in_code_and_all_of_it_in_one_entry() -> None:
    # "pause" in a sentence named the command, and an option of another command named that of this one.
    before = {"commands": ["link", "link delete", "pause", "status"]}
    now = {"commands": ["link", "status", "status --json"]}
    text = "- A pause of a link: delete `it`.\n- `status` is faster.\n- `order` has `--json`.\n"
    assert unnamed(before, now, text) == ["link delete", "pause", "status --json"]
    assert unnamed(before, now, "- `link delete`\n- `pause`, and `status`\n  with `--json`\n") == []
