"""The lock files against pyproject.toml; each lock's first lines hold the command that makes it anew."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from appliance.version import VERSION

CHECKOUT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
RUNTIME = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["demo"]
DEVELOPMENT = RUNTIME + PROJECT["optional-dependencies"]["development"]
PREPARE = PYPROJECT["dependency-groups"]["prepare"]
LOCKS = ["requirements.lock", "requirements-development.lock", "requirements-prepare.lock"]


def pins(lock: str) -> dict[str, str]:
    text = (CHECKOUT / lock).read_text()
    return dict(re.findall(r"^(\S+)==(\S+).* \\$", text, re.MULTILINE))


@pytest.mark.parametrize(("lock", "requirements"), list(zip(LOCKS, [RUNTIME, DEVELOPMENT, PREPARE], strict=True)))
def test_a_lock_pins_everything_that_the_project_asks_for(lock: str, requirements: list[str]) -> None:
    for requirement in map(Requirement, requirements):
        assert pins(lock)[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_version_that_the_metrics_show_is_the_projects() -> None:
    assert PROJECT["version"] == VERSION


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-prepare.lock"])
def test_the_tests_run_with_the_versions_that_the_appliance_runs_with(lock: str) -> None:
    assert pins(lock).items() <= pins("requirements-development.lock").items()


def test_preparing_a_vm_downloads_nothing_heavy() -> None:
    assert set(pins("requirements-prepare.lock")) == {
        "cffi",
        "cryptography",
        "dnslib",
        "jinja2",
        "markupsafe",
        "publicsuffixlist",
        "pycparser",
        "zxcvbn",
    }


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host_and_has_hashes_for_every_pin(lock: str) -> None:
    text = (CHECKOUT / lock).read_text()
    assert "://" not in text
    # A package may be pinned twice, for two versions of Python.
    pinned = re.findall(r"^\S+==\S+.* \\$", text, re.MULTILINE)
    assert len(re.findall(r"== *\S+.*\\\n    --hash=sha256:", text)) == len(pinned) > 0
