"""Failbacks that are killed before or after any write of any lane: the same command again ends in the same state.

Each write is a failback of its own, so these take long. For every submission, ``tests/faults`` kills the command's
process at steps by chance.
"""

import re

import pytest

from appliance.commands.failback import failback
from appliance.commands.run.operation import Choice
from appliance.engine.write.lane import Lane
from appliance.link.model.copy_states import CopyState
from tests.support.engine import Pair
from tests.support.failing_back import (
    Killed,
    Logs,
    copied,
    failed_back,
    kept,
    promoted,
    states,
    write_here,
    write_there,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.release]


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failback of the tests looks often."""
    monkeypatch.setattr(failback, "_PAUSE", 0.05)


async def test_case_95_a_failback_that_is_killed_at_any_write_is_finished_by_the_same_command(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [pair.topic(f"killed-{at}") for at in range(80)]
    write, finished = Lane.write, False
    async with pair.engine() as engine:
        for topic in topics:
            write_here(pair, topic, 5)
        await engine.copy_all()
        for at, topic in enumerate(topics):
            logs, choice, left = Logs(pair, topic), Choice(topic=re.escape(topic), yes=True), at // 2
            write_here(pair, topic, 3)
            here = logs.at_source()
            await promoted(pair, choice)
            write_there(pair, topic, 20)
            there = logs.at_copy()

            async def counted(self: Lane, *arguments: object, before: bool = at % 2 == 0) -> None:
                nonlocal left
                left -= 1
                if before and left == -1:
                    raise Killed
                await write(self, *arguments)  # type: ignore[arg-type]
                if left == -1:
                    raise Killed

            with monkeypatch.context() as patch:
                patch.setattr(Lane, "write", counted)
                try:
                    await failed_back(pair, choice)
                    finished = True
                except Killed:
                    pass
            await failed_back(pair, choice)
            assert await states(pair, topic) == {CopyState.ACTIVE}
            logs.check([*here, *there[5:]], there)
            write_here(pair, topic, 4)
            if finished:
                break
        assert finished
        await copied(engine)
        for topic in topics[: at + 1]:
            logs = Logs(pair, topic)
            logs.check([*(here := logs.at_source())], [*here[:5], *here[8:]])


async def test_case_170_what_is_kept_is_kept_once_whoever_is_killed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [pair.topic(f"killed-{at}") for at in range(60)]
    write, finished = Lane.write, False
    async with pair.engine() as engine:
        for topic in topics:
            write_here(pair, topic, 5)
        await engine.copy_all()
        for at, topic in enumerate(topics):
            choice, left = Choice(topic=re.escape(topic), yes=True, keep_diverged=True), at // 2
            write_here(pair, topic, 3)
            here = Logs(pair, topic).at_source()
            await promoted(pair, choice)
            write_there(pair, topic, 20)
            there = Logs(pair, topic).at_copy()

            async def counted(self: Lane, *arguments: object, before: bool = at % 2 == 0) -> None:
                nonlocal left
                if "failback" in self.transactional_id:
                    left -= 1
                    if before and left == -1:
                        raise Killed
                await write(self, *arguments)  # type: ignore[arg-type]
                if left == -1 and "failback" in self.transactional_id:
                    raise Killed

            with monkeypatch.context() as patch:
                patch.setattr(Lane, "write", counted)
                try:
                    await failed_back(pair, choice)
                    finished = True
                except Killed:
                    pass
            report = await failed_back(pair, choice)
            assert finished or [each.kept for each in report.partitions] == [3]
            assert kept(pair, topic) == here[5:]
            Logs(pair, topic).check([*here, *there[5:]], there)
            if finished:
                break
        assert finished
