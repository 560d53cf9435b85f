"""The lock files and the packed files, and pyproject.toml; each lock's first lines hold the command that updates it."""

import glob
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
PREPARE, BUILD, MATERIALS, DOCS = (
    PYPROJECT["dependency-groups"][group] for group in ("prepare", "build", "materials", "docs")
)
ASKED_FOR = {
    "requirements.lock": RUNTIME,
    "requirements-development.lock": DEVELOPMENT,
    "requirements-prepare.lock": PREPARE,
    "requirements-build.lock": BUILD,
    "requirements-materials.lock": MATERIALS,
    "requirements-docs.lock": DOCS,
}
SOURCE_ONLY = "pyspark"
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text()


def pins(lock: str) -> dict[str, str]:
    text = (CHECKOUT / lock).read_text()
    return dict(re.findall(r"^(\S+)==(\S+).* \\$", text, re.MULTILINE))


@pytest.mark.parametrize(("lock", "requirements"), ASKED_FOR.items())
def test_a_lock_pins_everything_that_the_project_asks_for(lock: str, requirements: list[str]) -> None:
    for requirement in map(Requirement, requirements):
        assert pins(lock)[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_version_that_the_metrics_show_is_the_projects() -> None:
    assert PROJECT["version"] == VERSION


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-prepare.lock", "requirements-materials.lock"])
def test_the_tests_run_with_the_versions_that_the_appliance_runs_with(lock: str) -> None:
    assert pins(lock).items() <= pins("requirements-development.lock").items()


def test_a_wheel_has_every_file_that_is_no_python() -> None:
    packed = {
        path
        for package, patterns in PYPROJECT["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for path in glob.glob(f"{CHECKOUT}/{package.replace('.', '/')}/{pattern}", recursive=True)
    }
    files = {path for path in (CHECKOUT / "appliance").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    others = {str(path) for path in files if path.suffix != ".py"}
    assert others
    assert others <= packed


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


def test_the_launchers_and_the_image_build_the_same_package_from_source_and_no_other() -> None:
    launchers = re.findall(r"^SOURCE_ONLY = (.*)$", (CHECKOUT / "bin" / "environment.py").read_text(), re.MULTILINE)
    image = re.findall(r"--no-binary (\S+)", DOCKERFILE)
    assert (launchers, image) == ([f'("{SOURCE_ONLY}",)'], [SOURCE_ONLY])


def test_every_step_of_pip_in_the_image_is_bound_to_hashes_or_to_no_index_and_fetches_nothing_for_a_build() -> None:
    lines = DOCKERFILE.replace("\\\n", " ").splitlines()
    commands = [command for line in lines if not line.startswith("#") for command in line.split("&&")]
    steps = [command.split() for command in commands if re.search(r"/pip .*(install|wheel|download) ", command)]
    assert len(steps) == 4
    for step in steps:
        assert "--no-index" in step or {"--require-hashes", "--only-binary", ":all:", "-r"} <= set(step)
    assert ["--no-build-isolation" in step for step in steps if "--no-binary" in step] == [True]


@pytest.mark.parametrize("lock", ASKED_FOR)
def test_a_lock_names_no_host_and_has_hashes_for_every_pin(lock: str) -> None:
    text = (CHECKOUT / lock).read_text()
    assert "://" not in text
    # A package may be pinned twice, for two versions of Python.
    pinned = re.findall(r"^\S+==\S+.* \\$", text, re.MULTILINE)
    assert len(re.findall(r"== *\S+.*\\\n    --hash=sha256:", text)) == len(pinned) > 0
