"""How an image was made: a statement of in-toto with SLSA's provenance, version 1.

https://in-toto.io/Statement/v1 and https://slsa.dev/provenance/v1 define the keys.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCKS = ("requirements-build.lock", "requirements-debian.lock", "requirements-materials.lock", "requirements.lock")
"""The locks of all that a build installs."""

_BUILDER = "https://kafka-cloud-replicator.invalid/bin/image"
"""Names the program, since this project has no address of its own."""
_LOGIN = re.compile(r"//\S*@")
"""The login in a URL, such as that of a proxy: Docker leaves it out of the image, and the statement goes with that."""
_BASE = re.compile(r"^ARG BASE=(?P<name>[^:@]+):(?P<tag>[^@]+)@sha256:(?P<digest>[0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Revision:
    """The commit of a checkout and its time in seconds; no commit if the files are those of none."""

    commit: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its name, its id, and the platform that it is for."""

    name: str
    id: str
    platform: str


def statement(checkout: Path, image: Image, revision: Revision, arguments: Sequence[str]) -> dict[str, Any]:
    """The statement about an image that was built in ``checkout`` with these build arguments."""
    commit = [{"uri": "git+file:.", "digest": {"gitCommit": revision.commit}}] if revision.commit else []
    parameters = {"platform": image.platform, "buildArguments": [_LOGIN.sub("//****@", each) for each in arguments]}
    definition = {
        "buildType": f"{_BUILDER}/build/v1",
        "externalParameters": parameters,
        "internalParameters": {"SOURCE_DATE_EPOCH": str(revision.epoch)},
        "resolvedDependencies": [*commit, _base((checkout / "Dockerfile").read_text()), *_locks(checkout)],
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": image.name, "digest": {"sha256": image.id.removeprefix("sha256:")}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {"buildDefinition": definition, "runDetails": {"builder": {"id": _BUILDER}}},
    }


def subject(statement: Mapping[str, Any]) -> str:
    """The id of the image that a statement is about."""
    [image] = statement["subject"]
    return f"sha256:{image['digest']['sha256']}"


def _base(dockerfile: str) -> dict[str, Any]:
    found = _BASE.search(dockerfile)
    if found is None:
        raise ValueError("the Dockerfile names no base with its digest")
    uri = f"pkg:docker/{found['name']}@{found['tag']}"
    return {"name": "base", "uri": uri, "digest": {"sha256": found["digest"]}}


def _locks(checkout: Path) -> list[dict[str, Any]]:
    digests = {name: hashlib.sha256((checkout / name).read_bytes()).hexdigest() for name in LOCKS}
    return [{"name": name, "uri": f"file:{name}", "digest": {"sha256": digest}} for name, digest in digests.items()]
