"""The bundle for those who help, of a running link."""

import json
from pathlib import Path

import pytest

from appliance.version import VERSION
from bench.lib.running import OWN_ADDRESS, free_port
from testbed.process import OwnedProcess
from tests.support.bundles import contents
from tests.support.link import Link, lines
from tests.support.patience import PATIENCE
from tests.support.recovering import recovered
from tests.support.rows import until_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")


def ended_with(command: OwnedProcess, beginning: str) -> str:
    """The rest of the line that begins so."""
    return next(line for line in lines(command) if line.startswith(beginning)).removeprefix(beginning)


async def test_a_running_links_bundle_has_status_metrics_diagnosis_log_and_versions(
    shared: Link, tmp_path: Path
) -> None:
    shared.clear()
    shared.make_topic(shared.orange, "orders", 1)
    shared.produce("orders", 10)
    names = "CONSOLE_LISTEN", "TUNNEL_STATUS_LISTEN"
    pages = {name: f"{OWN_ADDRESS}:{free_port(OWN_ADDRESS)}" for name in names}
    async with (
        shared.running("source"),
        shared.running("destination", **pages),
        shared.running("replicate", **pages) as replicator,
    ):
        await until_rows(shared.grape, "orders.copy", 10, 0)
        options = ["--output", str(tmp_path), "--logs", str(replicator.log_file)]
        command = await shared.start("support-bundle", options=options, **pages)
        assert await command.wait(3 * PATIENCE) == 0, command.failure("failed")
    files = contents(Path(ended_with(command, "The bundle is ")))
    assert [topic["topic"] for topic in json.loads(files["status.json"])["topics"]] == ["orders"]
    assert "kafka_replicator_snapshot_timestamp_seconds" in files["replicator-metrics.txt"].decode()
    assert "topics" in json.loads(files["replicator-status.txt"])
    assert json.loads(files["tunnel-status.txt"])["near"]["version"] == VERSION
    assert "kafka_tunnel_build_info" in files["tunnel-metrics.txt"].decode()
    assert {step["verdict"] for step in json.loads(files["doctor.json"])["steps"]} <= {"passed", "warning", "skipped"}
    assert "topics to copy" in files["log-1.txt"].decode()
    assert "\npyspark: " in files["versions.txt"].decode()
    assert "not there" not in files["README.txt"].decode()
    said = command.log_file.read_bytes()
    assert [found for content in (*files.values(), said) for found in recovered(content, shared.secrets)] == []
