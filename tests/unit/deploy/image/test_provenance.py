"""The statement of how an image was made, by the schema of its specifications and against the files."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from appliance.version import VERSION
from deploy.image.build import CHECKOUT
from deploy.image.provenance import LOCKS, Image, Revision, statement, subject

SCHEMA = json.loads(Path(__file__).with_name("slsa-provenance-v1.schema.json").read_text())
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text()
IMAGE = Image("kafka-cloud-replicator:1.2.3", f"sha256:{'1' * 64}", "linux/arm64")
COMMIT = "2" * 40


def faults(made: dict[str, Any]) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMA).iter_errors(made)]


@pytest.fixture
def made() -> dict[str, Any]:
    return statement(CHECKOUT, IMAGE, Revision(COMMIT, 1_700_000_000), ["BASE=other"])


@pytest.mark.parametrize("commit", [COMMIT, ""], ids=["a commit", "changed files"])
def test_it_is_valid_by_the_schema_of_in_toto_and_slsa(commit: str) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert not faults(statement(CHECKOUT, IMAGE, Revision(commit, 1), []))


def test_the_schema_refuses_what_is_misspelt_or_missing(made: dict[str, Any]) -> None:
    assert faults(made | {"predicateType": "https://slsa.dev/provenance/v0.2"})
    assert faults(made | {"subject": []})
    assert faults(made | {"predicate": made["predicate"] | {"materials": []}})
    assert faults(made | {"subject": [{"name": "x", "digest": {"sha256": "short"}}]})


def test_it_names_the_image_the_commit_the_base_and_every_lock(made: dict[str, Any]) -> None:
    assert subject(made) == IMAGE.id
    materials = made["predicate"]["buildDefinition"]["resolvedDependencies"]
    digests = {one.get("name", one["uri"]): one["digest"] for one in materials}
    base = re.findall(r"@sha256:(\w+)", DOCKERFILE)
    locks = {name: {"sha256": hashlib.sha256((CHECKOUT / name).read_bytes()).hexdigest()} for name in LOCKS}
    assert digests == {"git+file:.": {"gitCommit": COMMIT}, "base": {"sha256": base[0]}} | locks
    assert len(base) == 1


def test_the_locks_are_all_that_the_dockerfile_copies() -> None:
    assert set(re.findall(r"requirements[\w-]*\.lock", DOCKERFILE)) == set(LOCKS)


def test_the_images_version_is_the_appliances() -> None:
    assert re.findall(r'image\.version="(.*?)"', DOCKERFILE) == [VERSION]


def test_the_dockerfile_names_no_architecture() -> None:
    assert not re.findall(r"amd64|arm64|x86|aarch", DOCKERFILE.split("FROM", 1)[1])


def test_case_1406_the_login_of_a_proxy_is_not_in_it() -> None:
    # Docker keeps it out of the image, and the provenance, which goes with the image, had it.
    arguments = ["HTTPS_PROXY=http://user:hunter2@proxy:3128", "BASE=host:5000/base@sha256:1"]
    parameters = statement(CHECKOUT, IMAGE, Revision("", 1), arguments)["predicate"]["buildDefinition"]
    assert parameters["externalParameters"]["buildArguments"] == ["HTTPS_PROXY=http://****@proxy:3128", arguments[1]]
