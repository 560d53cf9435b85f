"""Fetching jars with the real Ivy. Only the first run on a machine needs the network: Ivy keeps what it fetched."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from appliance.errors import ProcessFailed
from testbed import jars

SMALL = jars.JarSet((("org.slf4j", "slf4j-api", "1.7.36"),))


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of jars that shares Ivy's own with the user's."""
    ivy = jars.cache_directory() / "ivy"
    ivy.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jars.cache_directory().mkdir()
    (jars.cache_directory() / "ivy").symlink_to(ivy)
    return jars.cache_directory()


@pytest.mark.usefixtures("cache")
def test_a_set_is_fetched_into_the_cache():
    (jar,) = jars.classpath(SMALL).split(os.pathsep)
    assert jar == str(SMALL.directory / "slf4j-api-1.7.36.jar")
    assert Path(jar).stat().st_size > 10_000


@pytest.mark.usefixtures("cache")
def test_a_jar_that_was_cut_short_is_fetched_again():
    jar = Path(jars.classpath(SMALL))
    whole = jar.read_bytes()
    jar.write_bytes(whole[:100])
    assert jars.classpath(SMALL) == str(jar)
    assert jar.read_bytes() == whole


@pytest.mark.usefixtures("cache")
def test_a_directory_left_by_an_interrupted_fetch_is_made_anew():
    SMALL.directory.mkdir()
    leftover = SMALL.directory / "half.jar"
    leftover.write_bytes(b"PK")
    assert "half.jar" not in jars.classpath(SMALL)
    assert not leftover.exists()


@pytest.mark.usefixtures("cache")
def test_two_at_once_fetch_only_once(caplog):
    caplog.set_level(logging.INFO, "demo")
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(jars.classpath, [SMALL, SMALL])
    assert first == second
    assert [record.message for record in caplog.records] == ["downloading Kafka"]


def test_a_download_without_network_fails_with_one_line_that_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1")
    with pytest.raises(
        ProcessFailed, match=r"could not be downloaded, check the network: .*Connection refused"
    ) as caught:
        jars.classpath(SMALL)
    assert "\n" not in str(caught.value)


def test_a_cache_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "kafka-cloud-replicator").write_text("a file in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ProcessFailed, match=f"cannot be kept in {tmp_path}"):
        jars.classpath(SMALL)
