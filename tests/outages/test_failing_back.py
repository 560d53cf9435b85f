"""Failbacks to a source whose brokers have died: what it has lost since it was copied comes back from the copy."""

import pytest
from confluent_kafka.admin import NewTopic

from appliance.commands.failback import failback as module
from appliance.commands.run.operation import Choice
from appliance.errors import LinkRefused
from testbed.cluster import Cluster
from tests.support.administration import make_topic
from tests.support.engine import LANES, Pair
from tests.support.failing_back import Logs, copied, failed_back, write_here, write_there
from tests.support.leaders import follower_leads
from tests.support.operating import Killed, failed_over

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    "later",
    [pytest.param(14, id="that was written to since"), pytest.param(0, id="that was not", marks=pytest.mark.release)],
)
async def test_case_165_a_source_that_lost_copied_records_gets_them_back_with_what_the_copy_took(
    pair: Pair, three_brokers: Cluster, later: int
) -> None:
    # The lost records were in the copy alone, and what came in their place was said to be all that had parted.
    lossy = Pair(three_brokers, pair.grape, pair.tag)
    topic = lossy.topic_on("lossy", 1, 2)
    logs = Logs(lossy, topic)
    write_here(lossy, topic, 10)
    async with lossy.engine() as engine:
        await engine.copy_all()
        common = logs.at_source()
        await three_brokers.kill(2)
        write_here(lossy, topic, 10)
        await engine.copy_all()
        await failed_over(lossy)
        await follower_leads(three_brokers, topic)
        await three_brokers.restart(1)
        write_here(lossy, topic, later)
        assert logs.at_source()[:10] == common
        instead = logs.at_source()[10:]
        write_there(lossy, topic, 5)
        held = logs.at_copy()
        assert len(held) == 25
        report = await failed_back(lossy)
        assert [(each.diverged, each.copied_back) for each in report.partitions] == [((10, 10 + later), 15)]
        logs.check([*common, *instead, *held[10:]], held)
        write_here(lossy, topic, 4)
        await copied(engine)
        new = logs.at_source()[25 + later :]
        logs.check([*common, *instead, *held[10:], *new], [*held, *new])


@pytest.mark.release  # held by case 177 in tests/unit/commands/test_failback_plan.py
async def test_case_177_a_copy_that_lost_what_was_copied_gives_back_all_that_it_took_since(
    pair: Pair, three_brokers: Cluster
) -> None:
    # What it took in the place of what it had lost lay below the end of the link's last transaction.
    lossy = Pair(pair.orange, three_brokers, pair.tag)
    topic = lossy.topic("lossy")
    logs = Logs(lossy, topic)
    loose = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    make_topic(three_brokers, NewTopic(logs.copy, 1, replica_assignment=[[1, 2]], config=loose))
    write_here(lossy, topic, 10)
    async with lossy.engine() as engine:
        await engine.copy_all()
        await three_brokers.kill(2)
        write_here(lossy, topic, 10)
        await engine.copy_all()
        await failed_over(lossy)
        await follower_leads(three_brokers, logs.copy)
        await three_brokers.restart(1)
        write_there(lossy, topic, 30)
        here, there = logs.at_source(), logs.at_copy()
        assert (len(here), len(there)) == (20, 40)
        with pytest.raises(LinkRefused, match=r"offsets 11 to \d+ of its copy were lost after they had been copied"):
            await failed_back(lossy)
        report = await failed_back(lossy, Choice(yes=True, allow_loss=True))
        assert [each.copied_back for each in report.partitions] == [30]
        logs.check([*here, *there[10:]], there)


@pytest.mark.release  # held by tests/simulation/test_source_place_cases.py
async def test_case_178_what_the_source_loses_of_what_was_copied_back_is_copied_back_once_more(
    pair: Pair, three_brokers: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The partition had stopped, and no command brought it on.
    lossy = Pair(three_brokers, pair.grape, pair.tag)
    topic = lossy.topic_on("lossy", 1, 2)
    logs = Logs(lossy, topic)

    async def killed(*_: object) -> None:
        raise Killed

    async def copy_back_and_die() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(module, "returns", killed)
            with pytest.raises(Killed):
                await failed_back(lossy)

    for name in (lossy.naming.failback.positions_topic, lossy.naming.failback.offsets_topic):
        whole = NewTopic(name, LANES, replica_assignment=[[0]] * LANES, config={"cleanup.policy": "compact"})
        make_topic(three_brokers, whole)
    write_here(lossy, topic, 10)
    async with lossy.engine() as engine:
        await engine.copy_all()
        await failed_over(lossy)
        write_there(lossy, topic, 8)
        await copy_back_and_die()
        kept = logs.at_source()
        assert len(kept) == 18
        await three_brokers.kill(2)
        write_there(lossy, topic, 7)
        await copy_back_and_die()
        assert len(logs.at_source()) == 25
        await follower_leads(three_brokers, topic)
        await three_brokers.restart(1)
        assert logs.at_source() == kept
        with pytest.raises(LinkRefused, match=f"{topic}.copy-0: the source has lost what was copied back"):
            await failed_back(lossy)
        await failed_back(lossy)
        held = logs.at_copy()
        logs.check(held, held)
        write_here(lossy, topic, 4)
        await copied(engine)
        assert len(lossy.compare(topic)[0]) == 29
