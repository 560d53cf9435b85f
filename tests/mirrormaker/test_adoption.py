"""MirrorMaker 2 itself copies, is killed in the middle, and the link goes on: nothing is lost, nothing copied again."""

import asyncio
import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.commands.adoption.mirror_maker import MirrorMaker, committed_offsets
from appliance.commands.adoption.model.plan import Beginning
from appliance.commands.adoption.model.report import AdoptionReport
from appliance.commands.run.operation import Choice
from appliance.errors import LinkRefused
from appliance.link.handle import Link
from appliance.logs.model.span import CopyState
from appliance.settings.values import TopicNaming
from appliance.verify.verification import Verification
from tests.support.engine import Engine, Pair
from tests.support.mirror_maker import adopted, running, when_stopped
from tests.support.patience import PATIENCE
from tests.support.rows import end, read_rows
from tests.support.verifying import results_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

_NEVER = {"grape__offset__flush__interval__ms": "3600000"}
_PARTITIONS = 2


@pytest.fixture
def pair(pair: Pair) -> Pair:
    """A link whose copies are named as those of MirrorMaker 2."""
    return replace(pair, kind=TopicNaming.PREFIX)


@contextlib.contextmanager
def written(pair: Pair, plain: str, transactional: str) -> Iterator[None]:
    """Write numbered records, in turn to either partition; and transactions, of which every third aborts."""
    stopping = threading.Event()

    def write_plain() -> None:
        producer = pair.producer()
        for number in itertools.count():
            producer.produce(plain, key=b"%d" % (number % 7), value=b"%d" % number, partition=number % _PARTITIONS)
            if number % 20 == 0:
                producer.flush(PATIENCE)
                if stopping.wait(0.05):
                    return

    def write_transactions() -> None:
        producer = pair.producer(**{"transactional.id": f"application-{pair.tag}"})
        producer.init_transactions(PATIENCE)
        for number in itertools.count():
            producer.begin_transaction()
            for record in range(5):
                producer.produce(transactional, value=b"%d.%d" % (number, record), partition=0)
            if number % 3:
                producer.commit_transaction(PATIENCE)
            else:
                producer.flush(PATIENCE)
                producer.abort_transaction(PATIENCE)
            if stopping.wait(0.02):
                return

    threads = [threading.Thread(target=each) for each in (write_plain, write_transactions)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def values(pair: Pair, topic: str, partition: int = 0) -> list[bytes]:
    """The values in a copy."""
    return [row[2] or b"" for row in read_rows(pair.grape, pair.naming.destination(topic), partition)]


def partitions(plain: str, transactional: str) -> list[tuple[str, int]]:
    return [(plain, 0), (plain, 1), (transactional, 0)]


async def until_copied(pair: Pair, plain: str, transactional: str, more: int = 200) -> None:
    """Wait until the copy of each partition has this many more records."""
    copies = [(pair.naming.destination(topic), number) for topic, number in partitions(plain, transactional)]
    async with asyncio.timeout(PATIENCE):
        before = {each: await asyncio.to_thread(end, pair.grape, *each) for each in copies}
        for each, offset in before.items():
            while await asyncio.to_thread(end, pair.grape, *each) < offset + more:
                await asyncio.sleep(0.1)


async def until_committed(pair: Pair, plain: str, transactional: str) -> None:
    """Wait until MirrorMaker 2 has committed an offset of each partition."""
    async with asyncio.timeout(PATIENCE), pair.engine() as engine:
        while not set(partitions(plain, transactional)) <= set(
            await committed_offsets(engine.destination, MirrorMaker(pair.naming.source)) or ()
        ):
            await asyncio.sleep(0.1)


def by_partition(report: AdoptionReport) -> dict[tuple[str, int], Beginning]:
    return {each.logs.replica.source: each for each in report.beginnings}


async def verified(engine: Engine, topic: str) -> list[tuple[CopyState, str]]:
    run = Verification(Link(engine.source, engine.destination, engine.pair.naming))
    found = await results_of(run, [topic], PATIENCE)
    return [(each.state, each.words) for each in found]


@pytest.mark.release  # held by tests/real/adoption, with records as MirrorMaker 2 leaves them
async def test_after_two_kills_of_mirror_maker_everything_is_there_once_but_the_doubles_that_are_named(
    pair: Pair, tmp_path: Path
) -> None:
    topics = pair.topic("plain", _PARTITIONS), pair.topic("transactional", 1)
    with written(pair, *topics):
        async with running(pair, tmp_path):
            await until_copied(pair, *topics)
            await until_committed(pair, *topics)
            with pytest.raises(LinkRefused, match=r"MirrorMaker 2 still runs: its group .*-mm2 has members"):
                await adopted(pair, Choice(dry_run=True))
        for _ in range(2):
            async with running(pair, tmp_path, **_NEVER):
                await until_copied(pair, *topics)
        before = {each: values(pair, *each) for each in partitions(*topics)}
        planned, _ = await when_stopped(pair, Choice(dry_run=True, wait=PATIENCE), whole=True)
        report = await adopted(pair, whole=True)
    print(*report.lines(), sep="\n")
    assert {each: found.offset for each, found in by_partition(report).items()} == {
        each: found.offset for each, found in by_partition(planned).items()
    }
    async with pair.engine() as engine:
        await engine.copy_all()
        for each, found in by_partition(report).items():
            copy, source = values(pair, *each), [row[2] or b"" for row in read_rows(pair.orange, *each)]
            named = {run.copy + n: run.source + n for run in found.doubles for n in range(run.length)}
            kept = Counter(value for offset, value in enumerate(copy) if offset not in named)
            assert {value: count for value, count in kept.items() if value in set(source)} == dict.fromkeys(source, 1)
            assert found.aborted == sum(kept[value] for value in kept.keys() - set(source))
            old = before[each]
            assert copy[: len(old)] == old
            assert copy[len(old) :] == source[len(source) - (len(copy) - len(old)) :]
            assert named
            assert found.logs.committed is not None
            assert found.offset > found.logs.committed
        for topic in topics:
            for state, words in await verified(engine, topic):
                assert state is CopyState.EQUAL_IN_PART
                assert words.startswith("equal from source offset ")
    assert not (await adopted(pair)).beginnings


@pytest.mark.release
async def test_where_mirror_maker_copies_exactly_once_there_are_no_doubles_and_its_transactions_must_have_ended(
    pair: Pair, tmp_path: Path
) -> None:
    topics = pair.topic("plain", _PARTITIONS), pair.topic("transactional", 1)
    with written(pair, *topics):
        for _ in range(2):
            async with running(pair, tmp_path, once=True):
                await until_copied(pair, *topics)
        report, refusals = await when_stopped(pair)
    runs = f"MirrorMaker 2 still runs: its group {pair.naming.source}-mm2 has members"
    opened = f"a transaction of {pair.naming.source}-mm2-MirrorSourceConnector-"
    assert all(refusal.startswith((runs, opened)) for refusal in refusals)
    assert not sum(each.doubled + each.aborted for each in report.beginnings)
    async with pair.engine() as engine:
        await engine.copy_all()
        for each in partitions(*topics):
            assert values(pair, *each) == [row[2] for row in read_rows(pair.orange, *each)]
