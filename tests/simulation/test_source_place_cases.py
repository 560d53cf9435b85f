"""A source that loses what lies before a place where copying began or was moved to is not spliced on (KIP-320)."""

import pytest

from appliance.failover import operation
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.position import SourcePlace
from appliance.replicator.model.position_change import Place
from appliance.replicator.reset import reset
from appliance.replicator.resume import RETRY, Choice, resume
from appliance.settings.values import OnGap, Start
from tests.simulation.log import Log
from tests.simulation.operator_commands import simulated
from tests.simulation.process import Replicator, settings
from tests.simulation.test_cases import Link, copied


class Begun(Link):
    """A link that has copied the ten records of a source partition, if its process has started."""

    def __init__(self, on_gap: OnGap = OnGap.STOP, *, starts: bool = True) -> None:
        super().__init__(on_gap)
        self.log: Log = self.source.make("aaa", 1).logs[0]
        self.write_singly(10)
        if starts:
            self.process.start(self.replicas())
            self.go_on(2)

    def resume(self, start: str) -> None:
        with simulated(self.source, self.destination, self.fates):
            assert self.run(resume(self.settings, Choice("aaa", 0, start), lambda _: None)) == 1

    def reset(self, to: str) -> None:
        async def command() -> None:
            choice = operation.Choice("aaa", yes=True)
            async with operation.operation(self.settings, choice, lambda _: None) as running:
                await reset(running, Place.parse("--to", to), None)

        with simulated(self.source, self.destination, self.fates):
            self.run(command())

    def write_singly(self, count: int) -> None:
        for _ in range(count):
            self.write(self.log)

    def lose(self, offset: int, written: int = 6) -> None:
        """The source comes back without its newest records, and is written on."""
        self.log.truncate(offset)
        self.source.lead(self.log, self.log.leader)
        self.write_singly(written)

    def require_stopped(self, lost_from: int, position: int) -> None:
        before = copied(self, "aaa.copy")
        self.go_on(20)
        lost = f"from offset {lost_from} on it does not hold what was copied up to {position}"
        assert f"the source's log was truncated: {lost}" in self.faults()["aaa-0"]
        assert copied(self, "aaa.copy") == before


@pytest.mark.parametrize("command", ["resume", "reset", "neither"])
def test_case_620_a_source_that_lost_what_lay_before_a_command_s_place_is_not_spliced_on(command: str) -> None:
    # Its position had no leader epoch: the new records from the place on were copied behind the lost ones.
    link = Begun()
    match command:
        case "resume":
            link.resume("latest")
        case "reset":
            link.reset("8")
    position = 8 if command == "reset" else 10
    link.lose(6)
    link.require_stopped(6, position)
    link.resume(RETRY)  # which keeps the position as it was
    link.require_stopped(6, position)
    link.resume("latest")
    link.write(link.log)
    link.go_on(20)
    assert link.faults() == {}


def test_case_621_a_killed_reset_ends_at_its_place_though_the_source_was_truncated_since() -> None:
    # The next run knew the offset of the first one, and took it for one of the log that was there by then.
    link = Begun()
    begun = link.loop.start(link.loop.world, _reset_until_begun(link))
    link.loop.run_while(lambda: not begun.done())
    link.lose(6)
    link.reset("8")
    link.require_stopped(6, 8)


async def _reset_until_begun(link: Begun) -> None:
    """Reset the topic up to the record of its state, as a run that is killed there."""
    from appliance.link.model.copy_states import CopyEvent
    from appliance.replicator.reset import _Run

    with simulated(link.source, link.destination, link.fates):
        choice = operation.Choice("aaa", yes=True)
        async with operation.operation(link.settings, choice, lambda _: None) as running:
            run = _Run(running, Place.parse("--to", "8"), None)
            await running.link.read()
            await run.find()
            await running.link.change(["aaa"], CopyEvent.RESET, run.details)


def test_case_622_a_source_that_lost_what_lay_before_the_end_of_a_gap_is_not_spliced_on() -> None:
    link = Begun(OnGap.RECORD)
    link.process.kill()
    link.write_singly(10)
    of_another_replica = list(link.log.entries)
    link.log.delete_before(20)
    link.process = Replicator(2, link.source, link.destination, link.fates, link.settings)
    link.process.start(link.replicas())
    link.go_on(20)
    assert list(link.faults()) == ["aaa-0 gap"]
    link.log.start, link.log.entries = 0, of_another_replica
    link.lose(6, 20)
    link.require_stopped(6, 20)


def test_case_623_a_source_that_lost_what_lay_before_its_first_copied_record_is_not_spliced_on() -> None:
    link = Begun(starts=False)
    link.settings = settings("orange", OnGap.STOP, Start.LATEST, 1)
    link.destination.delete(link.positions.name)
    link.process = Replicator(2, link.source, link.destination, link.fates, link.settings)
    link.process.start(None)
    link.go_on(5)
    assert link.process._starts == {"aaa": StartOffsets("aaa", link.source.topics["aaa"].id, (SourcePlace(10, 0),))}
    link.lose(6)
    link.require_stopped(6, 10)


def test_case_624_a_place_under_a_leader_that_wrote_nothing_is_read_on_from_under_the_next_leaders() -> None:
    # Their logs know no such epoch, and name the one before: nothing was lost.
    link = Begun()
    link.source.lead(link.log, link.log.leader)
    link.resume("latest")
    for _ in range(2):
        link.source.lead(link.log, link.log.leader)
        link.go_on(2)
    link.write(link.log, 3)
    link.go_on(20)
    assert link.faults() == {}
    assert copied(link, "aaa.copy") == 13


def test_case_625_a_place_amid_older_epochs_is_read_on_from_if_nothing_was_lost_and_if_they_were_compacted() -> None:
    link = Begun()
    for _ in range(2):
        link.source.lead(link.log, link.log.leader)
        link.write(link.log, 5)
        link.go_on(5)
    link.reset("7")
    link.log.rebuild_epochs()
    link.source.lead(link.log, link.log.leader)
    link.go_on(20)
    assert link.faults() == {}
    assert copied(link, "aaa.copy") == 20 + 13
