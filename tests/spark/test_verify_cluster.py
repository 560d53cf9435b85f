"""``bin/appliance verify`` on a Spark cluster: its hosts read both sides, and the results are those of one process."""

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.link import Link, lines
from tests.support.patience import PATIENCE
from tests.support.processes import runs
from tests.support.spark_cluster import (
    ENDPOINTS,
    EXECUTOR,
    LONG,
    PARTITIONS,
    all_copied,
    link_with_source,
    settings,
    spark_cluster,
)

Host = Callable[[], list[psutil.Process]]
"""Gives the processes on a host of the cluster."""

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]


async def verified(on: Link, spark: str, variables: dict[str, str], hosts: Sequence[Host] = ()) -> dict[str, Any]:
    """The report of a verification in which these hosts have taken part, without its times."""
    async with on.running("verify", "--json", "--spark", spark, **variables) as verifying:
        async with asyncio.timeout(LONG):
            while not all(any(runs(process, EXECUTOR) for process in host()) for host in hosts):
                await asyncio.sleep(0.05)
        assert await verifying.wait(PATIENCE) == 0, lines(verifying)
        printed = verifying.log_file.read_text()
    report, _ = json.JSONDecoder().raw_decode(printed, printed.index("{\n"))
    return {name: value for name, value in report.items() if name not in ("began", "ended")}


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
            hosts = [partial(cluster.started_by, host) for host in ENDPOINTS]
            async with asyncio.timeout(LONG):  # those of the replicator have ended
                while any(runs(process, EXECUTOR) for host in hosts for process in host()):
                    await asyncio.sleep(0.1)
            by_hosts = await verified(on, "yes", variables, hosts)
            alone = await verified(on, "no", variables)
    assert by_hosts == alone
    assert [each["state"] for each in by_hosts["partitions"]] == ["equal"] * PARTITIONS
