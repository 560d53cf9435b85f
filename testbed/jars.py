"""Kafka's own programs, fetched once from the public Maven repository into the user's cache.

PySpark contains Ivy, a resolver of Maven artifacts, so only Java has to be installed. A set of jars lies in a directory
that is named by a digest of its modules. It is complete when the manifest, which is written last, lists its jars
(``name size``, one on each line). A set that does not match its manifest is fetched again, under a lock.

The jars of the demo are pinned: ``kafka.sha256`` has the hash of each, in the format of sha256sum(1). A fetched jar
with another hash is refused, as is one that the file does not name. Sets of other versions, for tests, have those of
their jars checked that are pinned.
"""

import fcntl
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.errors import ProcessFailed, ToolMissing

KAFKA_VERSION = "4.3.1"

_LOG4J_VERSION = "2.25.4"
_DEADLINE = 900.0
_MANIFEST = "manifest"
_PINNED = Path(__file__).with_name("kafka.sha256")

log = logging.getLogger("demo")


@dataclass(frozen=True, slots=True)
class JarSet:
    """Maven modules, each ``(organisation, name, revision)``, fetched with all their dependencies.

    ``version`` is Kafka's, and part of the directory's name. ``excluded`` are dependencies to leave out, each
    ``(organisation, name)``.
    """

    modules: tuple[tuple[str, str, str], ...]
    version: str = KAFKA_VERSION
    excluded: tuple[tuple[str, str], ...] = ()

    @property
    def ivy_file(self) -> str:
        """The set as a module description of Ivy."""
        dependencies = "".join(
            f'<dependency org="{organisation}" name="{name}" rev="{revision}" conf="default"/>'
            for organisation, name, revision in self.modules
        ) + "".join(f'<exclude org="{organisation}" module="{name}"/>' for organisation, name in self.excluded)
        return _ivy_file(dependencies)

    @property
    def directory(self) -> Path:
        """The directory of the set, which may not exist yet."""
        return cache_directory() / f"kafka-{self.version}-{hashlib.sha256(self.ivy_file.encode()).hexdigest()[:12]}"


def _ivy_file(dependencies: str) -> str:
    """A module description of Ivy with these dependencies, which are elements of it."""
    info = '<info organisation="appliance" module="demo"/>'
    return f'<ivy-module version="2.0">{info}<dependencies>{dependencies}</dependencies></ivy-module>\n'


def broker_jars(version: str = KAFKA_VERSION) -> JarSet:
    """The modules of a broker of this version. Before 4.0 it calls Log4j 1.2, for which Log4j 2 has a bridge."""
    bridges = ["log4j-1.2-api", "log4j-slf4j-impl"] if _numbers(version) < (4,) else ["log4j-slf4j-impl"]
    logging_modules = tuple(("org.apache.logging.log4j", bridge, _LOG4J_VERSION) for bridge in bridges)
    return JarSet((("org.apache.kafka", "kafka_2.13", version), *logging_modules), version)


def on_zookeeper(version: str) -> bool:
    """True for versions that get a ZooKeeper for their metadata; KRaft is production-ready since 3.3 (KIP-833)."""
    return _numbers(version) < (3, 3)


def checkpoint_place(version: str) -> Path:
    """The place in a log directory of the feature levels of a new cluster; since 4.4 they are in the log (KIP-1170)."""
    if _numbers(version) < (4, 4):
        return Path("bootstrap.checkpoint")
    return Path("__cluster_metadata-0", "00000000000000000000-0000000000.checkpoint")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


BROKER = broker_jars()
MIRROR_MAKER = JarSet(
    (
        *BROKER.modules,
        ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
        ("org.apache.kafka", "connect-mirror", KAFKA_VERSION),
    )
)


def check_pinned(jar_set: JarSet, jars: Iterable[Path]) -> None:
    """Compare fetched jars with their pinned hashes.

    Raises:
        ProcessFailed: a jar is another one, or the demo's set has one that is not pinned.
    """
    pinned = {name: digest for digest, name in map(str.split, _PINNED.read_text().splitlines())}
    for jar in jars:
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        wanted = pinned.get(jar.name, "none" if set(jar_set.modules) <= set(MIRROR_MAKER.modules) else found)
        if found != wanted:
            again = f"remove {cache_directory() / 'ivy'} and start again; if it stays so, do not run it"
            raise ProcessFailed(f"{jar.name}: its SHA-256 is {found}, {wanted} is expected ({_PINNED.name}): {again}")


def cache_directory() -> Path:
    """The user's cache directory of this project, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "kafka-cloud-replicator"


def classpath(jar_set: JarSet = BROKER) -> str:
    """The Java class path of the set. The first call on a machine downloads the set in a minute or two.

    Raises:
        ProcessFailed: the download failed, or the cache cannot be written.
        ToolMissing: there is no Java, or no PySpark.
    """
    try:
        jars = _complete_jars(jar_set.directory) or _fetch_alone(jar_set)
    except OSError as error:
        raise ProcessFailed(f"Kafka cannot be kept in {cache_directory()}: {error.strerror}") from error
    return os.pathsep.join(str(jar) for jar in jars)


def fetch_archive(organisation: str, name: str, revision: str) -> Path:
    """A module that is published as a zip file, without dependencies; fetched once, as the jars are.

    Raises:
        ProcessFailed, ToolMissing: as ``classpath``.
    """
    archive = cache_directory() / f"{name}-{revision}" / f"{name}-{revision}.zip"
    cache_directory().mkdir(parents=True, exist_ok=True)
    with (cache_directory() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            partial = archive.parent / "partial"
            partial.mkdir(parents=True, exist_ok=True)
            ivy_file = partial / "ivy.xml"
            wanted = f'<dependency org="{organisation}" name="{name}" rev="{revision}" transitive="false">'
            wanted += f'<artifact name="{name}" type="zip" ext="zip"/></dependency>'
            ivy_file.write_text(_ivy_file(wanted))
            _run_ivy(cache_directory() / "ivy", ivy_file, f"{name} {revision}", ["zip"])
            (partial / archive.name).rename(archive)
    return archive


def _complete_jars(directory: Path) -> list[Path]:
    """The jars that the manifest lists, sorted; empty when one of them, or the manifest, is missing or incomplete."""
    try:
        listed = [line.split() for line in (directory / _MANIFEST).read_text().splitlines()]
        complete = all((directory / name).stat().st_size == int(size) for name, size in listed)
    except (OSError, ValueError):
        return []
    return [directory / name for name, _ in listed] if complete else []


def _fetch_alone(jar_set: JarSet) -> list[Path]:
    """Fetch the set unless another process does so first. The kernel releases the lock however this process ends."""
    cache_directory().mkdir(parents=True, exist_ok=True)
    with (cache_directory() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _complete_jars(jar_set.directory) or _fetch(jar_set)


def _fetch(jar_set: JarSet) -> list[Path]:
    directory = jar_set.directory
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir()
    log.info("downloading Kafka", extra={"fields": {"version": jar_set.version, "directory": str(directory)}})
    ivy_cache = cache_directory() / "ivy"
    ivy_file = directory / "ivy.xml"
    ivy_file.write_text(jar_set.ivy_file)
    _run_ivy(ivy_cache, ivy_file, f"Kafka {jar_set.version}")
    jars = sorted(directory.glob("*.jar"))
    check_pinned(jar_set, jars)
    partial = directory / f"{_MANIFEST}.partial"
    partial.write_text("".join(f"{jar.name} {jar.stat().st_size}\n" for jar in jars))
    partial.rename(directory / _MANIFEST)
    return jars


def _run_ivy(ivy_cache: Path, ivy_file: Path, what: str, types: Sequence[str] = ("jar", "bundle")) -> None:
    """Fetch the modules that ``ivy_file`` names into its directory. An interrupted download continues where it
    stopped."""
    pattern = f"{ivy_file.parent}/[artifact]-[revision](-[classifier]).[ext]"
    command = [java(), "-jar", str(_ivy_jar()), "-cache", str(ivy_cache), "-ivy", str(ivy_file)]
    command += ["-retrieve", pattern, "-types", *types, "-confs", "default"]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=_DEADLINE)
    except subprocess.CalledProcessError as error:
        reason = _first_complaint(error.stdout + error.stderr)
        raise ProcessFailed(f"{what} could not be downloaded, check the network: {reason}") from error
    except subprocess.TimeoutExpired as error:
        raise ProcessFailed(f"{what} was not downloaded within {_DEADLINE:.0f} s: check the network") from error


def _ivy_jar() -> Path:
    specification = importlib.util.find_spec("pyspark")
    homes = specification.submodule_search_locations if specification else None
    found = [jar for home in homes or () for jar in Path(home).glob("jars/ivy-*.jar")]
    if not found:
        raise ToolMissing("PySpark is missing, whose Ivy fetches Kafka: pip install pyspark")
    return found[0]


def _first_complaint(output: str) -> str:
    """The line of Ivy's output that best explains its failure."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Server access error") or "Exception" in line]
    missing = [line for line in lines if line.endswith(": not found")]
    return (causes or missing or lines or ["Ivy said nothing"])[0]


def java() -> str:
    """The path of the ``java`` program: that of JAVA_HOME, otherwise the first in PATH.

    Raises:
        ToolMissing: there is neither.
    """
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("java", path=os.path.join(home, "bin")) if home else None) or shutil.which("java")
    if found is None:
        raise ToolMissing("Java 17 or newer is missing: sudo apt-get install openjdk-17-jre-headless")
    return found
