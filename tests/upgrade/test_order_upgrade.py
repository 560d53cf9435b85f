"""An order of three clusters whose processes get this release and then the last one again, one after the other."""

import contextlib
import random
from functools import partial
from pathlib import Path

import pytest

from tests.faults.supervised import Supervised
from tests.support.order_chains import Chains
from tests.support.order_clusters import Ordered, ordered, settled, until
from tests.support.releases import Release

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]  # needs this repository's history

TOPIC, PARTITIONS = "orders-upgraded", 2
RECORDS = 50


async def goes_on(chains: Chains, clusters: Ordered) -> None:
    """Wait until each cluster shows so many records more."""
    wanted = max(chains.shown(*clusters.clusters)) + RECORDS
    await until(lambda: min(chains.shown(*clusters.clusters)) >= wanted)
    chains.check()


async def test_the_order_stays_one_when_each_process_gets_this_release_and_then_the_last_one_again(
    older: Release, newer: Release, chance: random.Random, tmp_path: Path
) -> None:
    async with ordered(3, tmp_path) as clusters, contextlib.AsyncExitStack() as undo:
        clusters.make_topic(TOPIC, PARTITIONS)
        beside = {name: Supervised(partial(clusters.process, name, older)) for name in clusters.clusters}
        for each in beside.values():
            undo.push_async_callback(each.close)
            await each.start()
        async with clusters.followed(TOPIC, PARTITIONS) as chains:
            with clusters.written(TOPIC, PARTITIONS, chance.randrange(2**31)):
                for release in (newer, older):
                    for name in chance.sample([*beside], len(beside)):
                        await goes_on(chains, clusters)
                        await beside[name].replace(partial(clusters.process, name, release))
                        await goes_on(chains, clusters)
                        beside[name].kill()
                await goes_on(chains, clusters)
            await settled(chains, *clusters.clusters)
        assert [defect for each in beside.values() for defect in each.defects()] == []
