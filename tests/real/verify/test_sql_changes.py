"""A verification during which the link's SQL is turned on."""

from collections.abc import Mapping

import pytest

from appliance.engine.write.lane import Lane
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import Owner
from appliance.link.model.link_sql import LinkSql
from appliance.logs.model.span import CopyState
from appliance.verify.partition_sql import PartitionSql
from appliance.verify.verification import Plan, Verification
from tests.real.verify.test_verify import produce
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Meanwhile(Verification):
    """A verification that looks for the link's SQL just before that is turned on."""

    engine: Engine
    topic: str

    async def sql(self, plan: Plan) -> Mapping[Partition, PartitionSql]:
        before = await super().sql(plan)
        await turned_on(self.engine, self.topic)
        return before


async def turned_on(engine: Engine, topic: str) -> None:
    """A start of the link with SQL, and the copies that it makes."""
    pair, layout = engine.pair, engine.layout
    owner = Owner("later", "worker", "host", 0, engine.generation + 1)
    timeout = engine.settings.transaction_timeout
    lane = Lane(layout.lane_of(topic, 0), engine.destination, pair.naming, owner, timeout, layout.number)
    await lane.start()
    await lane.agree_on_sql(LinkSql(1, "SELECT upper(string(value)) AS value FROM records"))
    producer = pair.producer(**pair.grape.client_configuration())
    for number in range(5):
        producer.produce(pair.naming.destination(topic), b"MADE %d" % number)
    assert producer.flush(PATIENCE) == 0


async def test_case_499_sql_that_is_turned_on_during_a_verification_makes_no_difference(pair: Pair) -> None:
    # The copies that it had made were compared with the source's records as they are.
    topic = pair.topic("turned-on")
    produce(pair, topic, 20)
    async with pair.engine() as engine:
        await engine.copy_all()
        produce(pair, topic, 5, 20)
        run = Meanwhile(engine.source, engine.destination, pair.naming)
        run.engine, run.topic = engine, topic
        (found,) = await results_of(run, [topic], 5.0)
    assert found.state is CopyState.NOT_COMPARED
    assert found.detail == "the link's SQL was changed while this was compared: run this again"
