"""The Python packages of an environment, each with the hash of the file from which it was installed."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageMetadata, distributions
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.component import Component
from cyclonedx.model.license import License
from packageurl import PackageURL

_NOT_A_LICENCE = "OSI Approved"
"""The last part of a classifier that names a group of licences."""


def python_packages(site: Path, wheels: Path, lock: str) -> list[Component]:
    """The packages in ``site``, installed from the files in ``wheels`` by the lock file's text ``lock``."""
    locked = _locked(lock)
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in wheels.glob("*.whl")}
    installed = sorted(distributions(path=[str(site)]), key=lambda one: _plain(one.name))
    return [_component(one, _digest(locked[_plain(one.name), one.version], digests)) for one in installed]


def licences(metadata: PackageMetadata) -> Iterator[License]:
    """The licence that a package states: as an SPDX expression, in its own words, or by its classifiers."""
    texts = [text.strip() for field in ("License-Expression", "License") for text in metadata.get_all(field) or []]
    names = [text for text in texts if text and "\n" not in text][:1] or _classified(metadata)
    for name in names:
        yield LicenseFactory().make_from_string(name)


def _component(distribution: Distribution, digest: str) -> Component:
    name, version = _plain(distribution.name), distribution.version
    purl = PackageURL("pypi", name=name, version=version)
    return Component(
        name=name,
        version=version,
        bom_ref=str(purl),
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        licenses=licences(distribution.metadata),
    )


def _classified(metadata: PackageMetadata) -> list[str]:
    classifiers = [text.split(" :: ") for text in metadata.get_all("Classifier") or [] if text.startswith("License ::")]
    return [parts[-1] for parts in classifiers if parts[-1] != _NOT_A_LICENCE]


def _digest(locked: Iterable[str], installed: set[str]) -> str:
    """The hash of the installed wheel, or of the source from which it was built if the lock has no other hash."""
    of_wheels = [digest for digest in locked if digest in installed]
    [digest] = of_wheels or locked
    return digest


def _locked(lock: str) -> Mapping[tuple[str, str], list[str]]:
    entries = re.split(r"\n(?=\S)", lock)
    names = [(re.match(r"(\S+)==(\S+)", entry), entry) for entry in entries]
    return {(_plain(at[1]), at[2]): re.findall(r"--hash=sha256:(\w+)", entry) for at, entry in names if at}


def _plain(name: str) -> str:
    """The name in the spelling of PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()
