"""The workflow of a release, read as the service reads it; only there it can run."""

import re
from typing import Any

import pytest
import yaml

from deploy.image.build import CHECKOUT

TEXT = (CHECKOUT / ".github" / "workflows" / "release.yml").read_text()
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def commands(job: str) -> str:
    return "\n".join(step.get("run", "") for step in JOBS[job]["steps"])


def test_it_runs_for_a_tag_of_a_version_alone() -> None:
    # YAML reads the key "on" as true.
    assert WORKFLOW[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
    assert "appliance.version" in commands("build")


def test_nothing_is_built_before_the_tests_and_nothing_published_before_both_platforms() -> None:
    assert ".ci/run" in commands("test")
    assert (JOBS["build"]["needs"], JOBS["publish"]["needs"]) == ("test", "build")
    platforms = {each["platform"] for each in JOBS["build"]["strategy"]["matrix"]["include"]}
    assert platforms == {"amd64", "arm64"}
    assert all(f"digests/{platform}" in commands("publish") for platform in platforms)


def test_each_image_is_built_twice_and_must_have_one_digest() -> None:
    assert "SOURCE_DATE_EPOCH" in commands("build")
    assert "rewrite-timestamp=true" in commands("build")
    assert re.search(r"build second --no-cache .*\| diff - digest$", commands("build"), re.MULTILINE)


def test_it_is_signed_without_a_key_and_with_its_provenance_and_bill() -> None:
    assert "cosign sign --yes" in commands("publish")
    assert {"slsaprovenance1", "cyclonedx"} == set(re.findall(r"attest --yes --type (\w+)", commands("build")))
    for job in JOBS:
        wanted = "write" if "cosign" in commands(job) else None
        assert JOBS[job].get("permissions", WORKFLOW["permissions"]).get("id-token") == wanted


@pytest.mark.parametrize("job", JOBS)
def test_no_secret_is_in_a_command_line(job: str) -> None:
    assert "secrets." not in commands(job)


def test_a_failure_before_a_pipe_ends_its_step() -> None:
    # Unless it is named, the shell has no pipefail, and two builds that both failed had the same digest: none.
    assert WORKFLOW["defaults"] == {"run": {"shell": "bash"}}
