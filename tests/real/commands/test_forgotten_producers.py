"""Failbacks into a source that has forgotten the producer ids with which they wrote: the map knows what they wrote."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from confluent_kafka import Producer

from appliance.commands.failback import failback
from appliance.commands.run.operation import Choice
from appliance.errors import LinkRefused
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyState
from appliance.link.model.layout import Layout
from testbed.cluster import Cluster
from tests.conftest import plain
from tests.support.engine import LANES, Pair
from tests.support.failing_back import failed_back, write_here
from tests.support.forgetful import forgetful, until_forgotten
from tests.support.operating import Killed, everywhere, failed_over
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lime(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """A source that forgets idle transactional ids after a second."""
    async with Cluster(forgetful(plain("lime", "127.0.3.4")), tmp_path_factory.mktemp("lime")) as cluster:
        yield cluster


async def test_case_682_a_failback_knows_what_it_wrote_after_its_producers_are_forgotten(
    pair: Pair, lime: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its own records were taken for a stranger's and refused, and with --allow-loss written into the gap ledger.
    pair = Pair(lime, pair.grape, pair.tag)
    topic, there = pair.topic("late", 2), Producer(pair.grape.client_configuration())
    lanes = {Layout(LANES).lane_of(pair.naming.destination(topic), partition) for partition in range(2)}

    async def killed(*_: object) -> None:
        raise Killed

    def write(count: int) -> None:
        for partition in range(2):
            produce(there, pair.naming.destination(topic), count, partition)

    async with pair.engine() as engine:
        for partition in range(2):
            produce(pair.producer(), topic, 5, partition)
        await engine.copy_all()
        await failed_over(pair)
        write(20)
        with monkeypatch.context() as patch:
            patch.setattr(failback, "returns", killed)
            with pytest.raises(Killed):
                await failed_back(pair)
        for lane in lanes:
            await until_forgotten(engine.source, pair.naming.failback.transactional_id(lane))
        strangers_from = len(pair.rows(lime, topic, 2)[0]) + 1  # and the marker
        write_here(pair, topic, 3)
        write(10)
        foreign = f"{topic}-0 offsets {strangers_from} to {strangers_from + 2}"
        with pytest.raises(LinkRefused, match=f"among what was copied back: {foreign}: these"):
            await failed_back(pair)
        report = await failed_back(pair, Choice(yes=True, allow_loss=True))
        assert [(each.copied_back, each.written_there) for each in report.partitions] == [
            (30, (strangers_from, strangers_from + 3)),
            (30, None),
        ]
        (gap,) = await engine.gaps()
        assert (gap.partition, gap.first, gap.next) == (Partition(topic, 0), strangers_from, strangers_from + 3)
        assert await everywhere(pair, topic) == {CopyState.ACTIVE}
        assert [len(rows) for rows in pair.rows(lime, topic, 2)] == [38, 35]
