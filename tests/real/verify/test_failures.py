"""A verification of records on which the link's SQL fails, on real brokers; the SQL itself is a function here."""

import pytest

from appliance.engine.model.ranges import Outcome, Range
from appliance.link.model.link_sql import LinkSql
from appliance.logs.model.span import CopyState
from appliance.sql.model.statement import Statement
from tests.real.engine.test_dead_letters import BAD, FailsOnBad, letters, send
from tests.real.verify.test_verify import verify
from tests.support.administration import delete_before
from tests.support.engine import Pair, delete_topic

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
