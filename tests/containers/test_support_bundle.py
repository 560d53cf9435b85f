"""The bundle for those who help, made on a VM with Docker, while its containers run and while they do not."""

import json
from collections.abc import Mapping

import pytest

from appliance.version import VERSION
from tests.containers.link import Link
from tests.containers.sites import GRAPE, ORANGE, Side
from tests.support.bundles import contents
from tests.support.recovering import recovered


def bundle(link: Link, side: Side) -> Mapping[str, bytes]:
    """The files of a new bundle, made on the VM of a side, in the environment of the prepare scripts."""
    folder = link.folder(side)
    before = set(folder.glob("support-*"))
    variables = {**link.vpcs.environment, "DOCKER_HOST": link.vpcs.engines[side.name].environment["DOCKER_HOST"]}
    command = f"cd '{folder}' && bin/appliance support-bundle"
    said = link.vpcs.machines[side.name].vm.say("sh", "-c", command, environment=variables)
    (made,) = set(folder.glob("support-*")) - before
    files = contents(made)
    made.unlink()
    assert [found for content in (*files.values(), said.encode()) for found in recovered(content, link.secrets)] == []
    return files


@pytest.mark.asyncio(loop_scope="session")
async def test_a_bundle_of_a_vm_with_docker_has_the_logs_and_what_the_containers_know(link: Link) -> None:
    await link.wait_until_copied()
    here = bundle(link, GRAPE)
    project = link.folder(GRAPE).name
    assert json.loads(here["status-by-replicator.json"])["topics"]
    assert json.loads(here["doctor.json"])["steps"]
    assert "kafka_replicator_snapshot_timestamp_seconds" in here["replicator-metrics.txt"].decode()
    assert json.loads(here["destination-status.txt"])["near"]["version"] == VERSION
    assert "\npyspark: " in here["versions-replicator.txt"].decode()
    logs = {name: text.decode() for name, text in here.items() if name.startswith("log-")}
    assert any(project in name and "topics to copy" in text for name, text in logs.items())
    there = bundle(link, ORANGE)
    assert json.loads(there["source-status.txt"])["version"] == VERSION
    assert any(name.startswith("log-") for name in there)


@pytest.mark.release  # while everything is down: held by tests/real/deploy/test_support_bundle.py
@pytest.mark.asyncio(loop_scope="session")
async def test_a_bundle_of_a_vm_whose_containers_are_stopped_has_their_logs_and_starts_none(link: Link) -> None:
    engine = link.vpcs.engines[GRAPE.name]
    engine.compose(link.folder(GRAPE), "stop")
    there = engine.docker("ps", "--all", "--quiet")
    try:
        files = bundle(link, GRAPE)
        assert engine.docker("ps", "--quiet") == ""
        assert engine.docker("ps", "--all", "--quiet") == there
    finally:
        link.up(GRAPE)
    assert "replicator-metrics.txt: not there (" in files["README.txt"].decode()
    assert any(name.startswith("log-") and b"topics to copy" in text for name, text in files.items())
    await link.wait_until_copied()
