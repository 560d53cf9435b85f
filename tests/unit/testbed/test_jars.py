"""The directory of Kafka's jars, and the request to Ivy."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from appliance.errors import ProcessFailed
from testbed import jars


def test_the_cache_follows_the_xdg_variable(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    assert jars.cache_directory() == Path("/somewhere/cache/kafka-cloud-replicator")


def test_a_relative_xdg_variable_is_ignored_as_its_specification_demands(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert jars.cache_directory() == Path.home() / ".cache" / "kafka-cloud-replicator"


def test_a_set_asks_for_its_modules_at_their_exact_revisions():
    dependencies = ElementTree.fromstring(jars.MIRROR_MAKER.ivy_file).findall("dependencies/dependency")
    asked = {(entry.get("name"), entry.get("rev")) for entry in dependencies}
    assert {(name, jars.KAFKA_VERSION) for name in ("kafka_2.13", "kafka-tools", "connect-mirror")} < asked


def test_another_choice_of_modules_is_kept_in_another_directory():
    assert jars.BROKER.directory != jars.MIRROR_MAKER.directory


@pytest.mark.parametrize(("version", "bridges"), [("2.8.2", 2), ("3.9.1", 2), ("4.0.0", 1), ("4.10.0", 1)])
def test_every_version_of_a_broker_has_jars_and_a_directory_of_its_own(version: str, bridges: int) -> None:
    jar_set = jars.broker_jars(version)
    assert ("org.apache.kafka", "kafka_2.13", version) in jar_set.modules
    assert sum(organisation.endswith("log4j") for organisation, _, _ in jar_set.modules) == bridges
    assert jar_set.directory.name.startswith(f"kafka-{version}-")


PINNED = (Path(jars.__file__).parent / "kafka.sha256").read_text()


def test_every_jar_of_kafka_itself_in_the_demo_is_pinned() -> None:
    named = {name for _, name in map(str.split, PINNED.splitlines())}
    assert {f"{name}-{revision}.jar" for _, name, revision in jars.MIRROR_MAKER.modules} <= named


@pytest.mark.parametrize(
    ("jar_set", "name", "refused"),
    [
        (jars.BROKER, f"kafka_2.13-{jars.KAFKA_VERSION}.jar", True),
        (jars.MIRROR_MAKER, "nobody-knows-1.0.jar", True),
        (jars.broker_jars("3.9.1"), "kafka_2.13-3.9.1.jar", False),
        (jars.broker_jars("3.9.1"), "slf4j-api-1.7.36.jar", True),
    ],
)
def test_case_1013_a_jar_that_is_not_the_pinned_one_is_refused(
    tmp_path: Path, jar_set: jars.JarSet, name: str, refused: bool
) -> None:
    """Before, the hashes were those of the repository that the jars came from."""
    jar = tmp_path / name
    jar.write_bytes(b"another jar")
    if not refused:
        jars.check_pinned(jar_set, [jar])
        return
    with pytest.raises(ProcessFailed, match=name):
        jars.check_pinned(jar_set, [jar])
