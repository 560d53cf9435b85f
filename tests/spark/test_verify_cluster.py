"""``bin/appliance verify`` on a Spark cluster: its hosts read both sides, and the results are those of one process."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.link import Link, lines
from tests.support.patience import PATIENCE
from tests.support.spark_cluster import (
    ENDPOINTS,
    LONG,
    PARTITIONS,
    all_copied,
    link_with_source,
    settings,
    spark_cluster,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]


async def verified(on: Link, spark: str, variables: dict[str, str]) -> dict[str, Any]:
    """The partitions of a verification's report."""
    async with on.running("verify", "--json", "--spark", spark, **variables) as verifying:
        assert await verifying.wait(PATIENCE) == 0, lines(verifying)
        (report,) = (line for line in lines(verifying) if line.startswith("{"))
    return {name: value for name, value in json.loads(report).items() if name not in ("began", "ended")}


async def test_the_hosts_of_a_cluster_share_a_verification(tmp_path: Path) -> None:
    variables = settings()
    async with link_with_source(tmp_path) as on:
        on.make_topic(on.orange, "orders", PARTITIONS)
        async with spark_cluster(on, variables) as cluster, on.running("destination") as gateway:
            await gateway.wait_for_line("ready", PATIENCE)
            async with on.running("replicate", **variables) as replicator:
                async with asyncio.timeout(LONG):
                    while not all(map(cluster.copies_on, ENDPOINTS)):
                        await asyncio.sleep(0.1)
                await all_copied(on)
                await replicator.stop(PATIENCE)
            by_hosts = await verified(on, "yes", variables)
            for host, worker in cluster.workers.items():
                launched = [line for line in lines(worker) if "Asked to launch executor" in line]
                assert any("for verify-" in line for line in launched), (host, launched)
            alone = await verified(on, "no", variables)
    assert by_hosts == alone
    assert [each["state"] for each in by_hosts["partitions"]] == ["equal"] * PARTITIONS
