"""Adoptions that are killed before or after any of their writes: the same command again ends in the same state."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from appliance.kafka.client.config_filter import ConfigFilter
from appliance.kafka.protocol.metadata import Partition
from appliance.link.client.writer import Writer
from appliance.link.model.copy_states import CopyState
from appliance.settings.values import TopicNaming
from tests.support.engine import Engine, Pair
from tests.support.mirror_maker import adopted, commit_as_it_does, copies, numbered, send
from tests.support.operating import Killed, everywhere
from tests.support.rows import read_rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

_LANES = 2
_PARTITIONS = 2
_SOURCE, _COPIED = numbered(0, 60), (50, 41)
_COPY = {number: [*_SOURCE[:end], *_SOURCE[30 : end - 5]] for number, end in enumerate(_COPIED)}


@pytest.fixture(params=[12, pytest.param(1, marks=pytest.mark.release)])
def each(request: pytest.FixtureRequest) -> int:
    """Every so many kills are tried."""
    return int(request.param)


@contextlib.contextmanager
def killed_at(step: int, before: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kill at a write: a transaction of any lane or of the registry, or the making of a topic."""
    left = step

    def patched(kind: type, name: str) -> None:
        write = getattr(kind, name)

        async def counted(self: object, *arguments: object) -> object:
            nonlocal left
            left -= 1
            if before and left == -1:
                raise Killed
            answer = await write(self, *arguments)
            if left == -1:
                raise Killed
            return answer

        patch.setattr(kind, name, counted)

    with monkeypatch.context() as patch:
        patched(Writer, "write")
        patched(ConfigFilter, "make")
        yield


def mirrored(pair: Pair) -> str:
    """A topic whose partitions MirrorMaker 2 has copied, with doubles, and each up to another offset."""
    topic = pair.topic("killed", _PARTITIONS)
    pair.make_copy(topic, _PARTITIONS)
    for number in range(_PARTITIONS):
        send(pair.producer(), topic, _SOURCE, number)
        send(copies(pair), pair.naming.destination(topic), _COPY[number], number)
    commit_as_it_does(pair, {Partition(topic, number): 29 for number in range(_PARTITIONS)})
    return topic


def values(pair: Pair, topic: str) -> dict[int, list[bytes | None]]:
    copy = pair.naming.destination(topic)
    return {number: [row[2] for row in read_rows(pair.grape, copy, number)] for number in range(_PARTITIONS)}


async def replicator_copies_nothing_yet(engine: Engine, topic: str) -> None:
    """Run a replicator on what a killed adoption has left, as far as it can copy anything."""
    await engine.establish(LANES=str(_LANES))
    found = await engine.discovery().search()
    if found.replicas and not any(held.next_offset >= 0 for held in (await engine.positions_now()).values()):
        await engine.assign()
        await engine.until_all_stopped(topic, _PARTITIONS)
        engine.runners.clear()
    assert values(engine.pair, topic) == {number: [record.value for record in some] for number, some in _COPY.items()}


async def test_case_323_an_adoption_that_is_killed_at_any_write_is_finished_by_the_same_command(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, each: int
) -> None:
    for at in itertools.count(step=each):
        link = replace(pair, tag=f"{pair.tag}-{at}", kind=TopicNaming.PREFIX)
        topic, finished = mirrored(link), False
        with killed_at(at // 2, at % 2 == 0, monkeypatch):
            try:
                await adopted(link, lanes=_LANES)
                finished = True
            except Killed:
                pass
        async with link.engine() as engine:
            if not finished:
                await replicator_copies_nothing_yet(engine, topic)
            await adopted(link, lanes=_LANES)
            assert await everywhere(link, topic) == {CopyState.ACTIVE}
            await engine.establish(LANES=str(_LANES))
            positions = await engine.positions_now()
            assert [positions[topic, number].next_offset for number in range(_PARTITIONS)] == list(_COPIED)
            await engine.copy_all()
        assert values(link, topic) == {
            number: [record.value for record in (*some, *_SOURCE[_COPIED[number] :])] for number, some in _COPY.items()
        }
        if finished:
            return
