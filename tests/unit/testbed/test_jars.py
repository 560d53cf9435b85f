"""The directory of Kafka's jars, and the request to Ivy."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

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
