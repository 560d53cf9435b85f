"""A bounded link on two clusters: it reads at most what its bucket holds, and a changed bound applies while it
copies."""

import asyncio

import pytest

from appliance.engine.read.buffer_budget import Allowance
from tests.support.engine import Engine, Pair
from tests.support.patience import PATIENCE
from tests.support.records import produce

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Counted(Allowance):
    """A bucket that counts the bytes, and compares them with its own clock at each request."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = self.asked = 0
        self.began = self._clock()

    async def remaining(self, wanted: int) -> int:
        before = self.spent
        found = await super().remaining(wanted)
        if self._rate and before == self.spent:
            self.asked += 1
            assert self.spent <= self._rate * (1.002 + self._clock() - self.began)
        return found

    def spend(self, size: int) -> None:
        super().spend(size)
        self.spent += size


def counting(engine: Engine) -> Counted:
    """Count the bytes that this engine reads."""
    engine.reader.budget.allowance = counted = Counted()
    return counted


async def test_no_more_is_read_from_the_source_than_the_bound_allows_for(pair: Pair) -> None:
    topic = pair.topic("bounded", 2)
    async with pair.engine() as engine:
        counted = counting(engine)
        engine.reader.bound(50_000)
        for partition in range(2):
            for _ in range(5):
                produce(pair.producer(), topic, 20, partition, size=1000)
        await engine.copy_all()
        assert counted.spent >= 150_000
        assert counted.asked > 2
    pair.compare(topic, 2)


async def test_a_bound_that_is_raised_lets_what_is_left_be_copied_while_lanes_run(pair: Pair) -> None:
    topic = pair.topic("raised")
    for _ in range(10):
        produce(pair.producer(), topic, 200, size=1000)
    async with pair.engine() as engine:
        counted = counting(engine)
        engine.reader.bound(1)
        await engine.prepare()

        async def raised() -> None:
            async with asyncio.timeout(PATIENCE):
                while counted.pause <= PATIENCE:  # until a batch is read, of which each byte costs a second
                    await asyncio.sleep(0.02)
            read = counted.spent
            engine.reader.bound(0)
            await engine.caught_up()
            assert counted.spent > read

        await engine.copy_until(raised())
        await engine.until_decided()
    assert len(pair.compare(topic)[0]) == 2000
