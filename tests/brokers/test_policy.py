"""A destination whose brokers refuse topics by a policy class, as in Confluent Cloud."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from testbed.cluster import Cluster
from tests.brokers.policy import LEAST, SETTING, compiled_policy
from tests.brokers.versions import LIVE, NEWEST, Versions, plan
from tests.brokers.way import Way
from tests.support.administration import configuration, configure, make_topic
from tests.support.link import lines
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]
# tests/real/driver/test_topic_settings.py holds the same against answers of such a policy.


@pytest_asyncio.fixture(loop_scope="session")
async def refusing(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A cluster that refuses small segments."""
    classes = tmp_path / "classes"
    classes.mkdir()
    strict = replace(
        plan(NEWEST, "127.0.6.100"), name="strict", properties=(SETTING,), classes=(compiled_policy(classes),)
    )
    async with Cluster(strict, tmp_path) as cluster:
        yield cluster


async def test_settings_that_a_real_policy_refuses_are_left_out_and_said_once(
    versions: Versions, refusing: Cluster, tmp_path: Path
) -> None:
    with pytest.raises(KafkaException, match="exceeded min limit"):
        make_topic(refusing, NewTopic("small", 1, 1, config={"segment.bytes": str(LEAST - 1)}))
    source = await versions.source(NEWEST)
    small = {"segment.bytes": str(1 << 20), "retention.ms": "-1"}
    configure(source, LIVE, **small)
    way = Way(source, refusing, tmp_path)
    try:
        async with way.writing(seed=0) as workload, way.running("replicate") as replicator:
            await way.until_copied(replicator, 1)
            await workload.stop()
            assert (await way.verified())["equal"]
    finally:
        configure(source, LIVE, **dict.fromkeys(small))
    copy = configuration(refusing, f"{LIVE}.{way.suffix}")
    assert "segment.bytes" not in copy
    assert copy["retention.ms"] == "-1"
    positions = configuration(refusing, f"replicator-{source.plan.name}.positions")
    assert "segment.bytes" not in positions
    assert positions["cleanup.policy"] == "compact"
    said = [line for line in lines(replicator) if "settings left out" in line]
    assert [sum(LIVE in line for line in said), sum("positions" in line for line in said)] == [1, 1]
    assert all("exceeded min limit" in line and "segment.bytes" in line for line in said)


async def test_the_doctor_is_refused_no_topic_that_the_replicator_makes(
    versions: Versions, refusing: Cluster, tmp_path: Path
) -> None:
    way = Way(await versions.source(NEWEST), refusing, tmp_path)
    async with way.running("doctor", "destination", "--json") as doctor:
        code = await doctor.wait(PATIENCE)
    assert code == 0, doctor.log_file.read_text()
