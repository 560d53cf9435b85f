"""Copy, kill and verify between brokers of every tested version, each as source and as destination."""

from pathlib import Path

import pytest

from tests.brokers.versions import EACH_SUBMISSION, PAIRS, Versions
from tests.brokers.way import PARTITIONS, Way

TRIED = [
    pytest.param(*pair, id="-to-".join(pair), marks=[] if pair in EACH_SUBMISSION else [pytest.mark.release])
    for pair in PAIRS
]

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(("source", "destination"), TRIED)
async def test_a_replicator_that_is_killed_while_it_copies_loses_and_doubles_nothing(
    versions: Versions, source: str, destination: str, tmp_path: Path
) -> None:
    way = Way(await versions.source(source), await versions.cluster(destination), tmp_path)
    async with way.writing(seed=PAIRS.index((source, destination))) as workload:
        async with way.running("replicate") as replicator:
            await way.until_copied(replicator, 1)
        async with way.running("replicate") as replicator:
            await way.until_copied(replicator, 1)
            await workload.stop()
            said = await way.verified()
    assert said["equal"], said
    assert {(partition["topic"], partition["partition"]) for partition in said["partitions"]} == set(PARTITIONS)
    expected, copies = await way.both_sides()
    assert [partition for partition in PARTITIONS if expected[partition] != copies[partition]] == []
    assert said["records"] == sum(map(len, expected.values()))
