"""A verification of records on which the link's SQL fails, or during which it is turned on; it is a function here."""

from collections.abc import Mapping

import pytest

from appliance.engine.model.ranges import Outcome, Range
from appliance.engine.write.lane import Lane
from appliance.kafka.protocol.metadata import Partition
from appliance.link.handle import Link
from appliance.link.model.checkpoint import Owner
from appliance.link.model.link_sql import LinkSql
from appliance.logs.model.span import CopyState
from appliance.sql.model.statement import Statement
from appliance.verify.partition_sql import PartitionSql
from appliance.verify.verification import Plan, Verification
from tests.real.engine.test_dead_letters import BAD, FailsOnBad, letters, send
from tests.real.verify.test_verify import produce, verify
from tests.support.administration import delete_before
from tests.support.engine import Engine, Pair, delete_topic
from tests.support.patience import PATIENCE
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

SQL = Statement("SELECT value FROM records")


async def evaluate(_: LinkSql, each: Range) -> Outcome:
    (outcome,) = await FailsOnBad().transform([each])
    return outcome


async def test_case_837_a_record_at_which_the_link_stands_is_neither_copied_nor_a_dead_letter(pair: Pair) -> None:
    # Before, it counted as left out by the SQL, whether the link had passed it or not: "equal", with exit code 0.
    topic = pair.topic("stands")
    send(pair, topic, b"good")
    async with pair.engine() as engine:
        engine.statement, engine.transform = SQL, FailsOnBad()
        await engine.copy_all()
        send(pair, topic, BAD)
        found = (await verify(engine, evaluate=evaluate))["stands", 0]
        assert (found.state, found.behind, found.failed_at) == (CopyState.BEHIND, 1, 1)
        assert "source offset 1, which is neither copied nor a dead letter" in found.detail
        await engine.copy_all()
        found = (await verify(engine, evaluate=evaluate))["stands", 0]
    assert (found.state, found.records) == (CopyState.EQUAL, 1)


async def test_case_838_dead_letters_that_are_lost_are_told_by_number(pair: Pair) -> None:
    # Before, nobody looked at them.
    topic = pair.topic("letters")
    for number in range(5):
        send(pair, topic, BAD + b"%d" % number)
    send(pair, topic, b"good")
    async with pair.engine() as engine:
        engine.statement, engine.transform = SQL, FailsOnBad()
        await engine.copy_all()
        assert (await verify(engine, evaluate=evaluate))["letters", 0].state is CopyState.EQUAL
        delete_before(pair.grape, letters(pair, topic), 0, 3)
        assert (await verify(engine, evaluate=evaluate))["letters", 0].state is CopyState.EQUAL
        delete_topic(pair.grape, letters(pair, topic))
        found = (await verify(engine, evaluate=evaluate))["letters", 0]
    assert (found.state, found.detail) == (CopyState.DIFFERS, "the destination lacks 5 dead letters of 5")


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
        run = Meanwhile(Link(engine.source, engine.destination, pair.naming))
        run.engine, run.topic = engine, topic
        (found,) = await results_of(run, [topic], 5.0)
    assert found.state is CopyState.NOT_COMPARED
    assert found.detail == "the link's SQL was changed while this was compared: run this again"
