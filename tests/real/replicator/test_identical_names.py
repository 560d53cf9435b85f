"""Topics of one name in several clusters, copied in all directions at once: each record once everywhere."""

import pytest

from tests.support.engine import Pair
from tests.support.mesh import Mesh, copy_all

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def two(pair: Pair) -> Mesh:
    """Two clusters that copy to each other."""
    return Mesh({"orange": pair.orange, "grape": pair.grape}, pair.tag)


async def test_records_of_both_sides_are_on_both_sides_once_and_in_order(two: Mesh) -> None:
    topic = two.topic("orders", 2)
    for partition in range(2):
        two.produce("orange", topic, 100, partition)
        two.produce("grape", topic, 50, partition, abort=False)
        two.produce("grape", topic, 30, partition, abort=True)
    async with two.engines() as engines:
        for engine in engines:
            await engine.prepare()
        await copy_all(engines)
        two.produce("orange", topic, 20, abort=False)
        two.produce("grape", topic, 20, 1)
        await copy_all(engines)
        two.require_all(topic, 2)
        forth, back = [[engine.held(topic, partition) for partition in range(2)] for engine in engines]
    for there, here in zip(forth, back, strict=True):
        assert there is not None
        assert here is not None
        assert (there.records, here.records) == (here.dropped, there.dropped)
        assert min(there.records, here.records) > 0
