"""A source that loses what lies before a place where copying began or was moved to is not spliced on (KIP-320)."""

from typing import Any

import pytest

from appliance.commands.failback import failback as failback_command
from appliance.commands.failback.failback import failback
from appliance.commands.model.position_change import Place
from appliance.commands.promotion import failover
from appliance.commands.reset import _Run
from appliance.commands.resumption import RETRY
from appliance.commands.run import operation
from appliance.errors import LinkRefused, SettingsError
from appliance.link.model.checkpoint import StartOffsets
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.position import SourcePlace
from appliance.settings.values import OnGap, Start
from tests.simulation.process import Replicator, settings
from tests.simulation.scenario import Begun


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
    with pytest.raises(SettingsError, match="copy what the source has written since its loss"):
        link.resume(RETRY)  # it would stop there again
    link.require_stopped(6, position)
    link.resume("latest")
    link.write(link.log)
    link.go_on(20)
    assert link.faults() == {}


def test_case_621_a_killed_reset_ends_at_its_place_though_the_source_was_truncated_since() -> None:
    # The next run knew the offset of the first one, and took it for one of the log that was there by then.
    link = Begun()

    async def until_begun(running: operation.Operation) -> None:
        run = _Run(running, Place.parse("--to", "8"), None)
        await running.lanes.read()
        await run.find()
        await running.lanes.change(["aaa"], CopyEvent.RESET, run.details)

    link.command(until_begun)
    link.lose(6)
    link.reset("8")
    link.require_stopped(6, 8)


def test_case_622_a_source_that_lost_what_lay_before_the_end_of_a_gap_is_not_spliced_on() -> None:
    # The position after a gap had no leader epoch.
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
    # The start at the latest offset had no leader epoch.
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
    assert link.copy_count == 13


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
    assert link.copy_count == 20 + 13


def test_case_626_a_second_failback_finds_where_the_source_has_lost_what_the_first_one_returned() -> None:
    # The position after the first one had no leader epoch, so the logs were said to part at its offset.
    link = Begun()
    link.destination.make(link.naming.offsets_topic, 1, {"cleanup.policy": "compact"})
    link.command(failover)
    link.write_copy(20)
    link.command(failback)
    held = link.position()
    assert (held.next_offset, held.leader_epoch) == (link.log.end, link.log.leader_epoch)
    link.command(failover)
    link.lose(10, 40)
    (planned,) = link.command(failback, dry_run=True).partitions
    assert planned.diverged == (10, 50)


def test_case_627_a_source_that_lost_what_a_failback_returned_is_not_spliced_on() -> None:
    # The position after a failback had no leader epoch.
    link = Begun()
    link.command(failover)
    link.write_copy(20)
    link.command(failback)
    position = link.position().next_offset
    link.lose(10, 40)
    link.require_stopped(10, position)


def test_case_628_a_failback_does_not_end_once_the_source_has_lost_what_was_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The link's position went past the lost records, under the epoch of the leader that had lost them.
    link = Begun()
    link.destination.make(link.naming.offsets_topic, 1, {"cleanup.policy": "compact"})
    link.command(failover)
    link.write_copy(20)
    returns = failback_command.returns

    async def losing(*arguments: Any) -> Any:
        found = await returns(*arguments)
        link.lose(10, 40)
        return found

    monkeypatch.setattr(failback_command, "returns", losing)
    with pytest.raises(LinkRefused, match="aaa-0: the source has lost what was copied back: run this again"):
        link.command(failback)
    assert link.position().next_offset == 10
