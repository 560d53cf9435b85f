"""What promotions and failbacks say of both logs in awkward moments."""

import asyncio
from typing import Any

import pytest

from appliance.commands import promotion
from appliance.commands.failback.failback import failback
from appliance.commands.promotion import failover, promote
from appliance.commands.run import operation
from appliance.errors import LinkRefused
from appliance.link.model.copy_states import CopyState
from tests.simulation.scenario import Begun
from tests.support.operating import run_command


def test_case_761_a_promotion_calls_no_marker_lost_that_is_on_its_way_to_a_new_leader() -> None:
    # The position is seen before the marker; "has lost what it had acknowledged, offsets 12 to 12", and no promotion.
    link = Begun()
    link.holds_markers = True
    link.write_singly(1)
    link.go_on(2)
    link.destination.lead(link.copy_log, link.copy_log.leader)
    report = link.command(promote, dry_run=True)
    for act in link.held:
        act()
    assert [loss.fault for loss in report.losses] == [""]


def test_case_763_a_topic_that_comes_during_a_failover_of_others_ends_no_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # KeyError: the positions are read again after the logs; the copies were promoted, and no report was printed.
    link = Begun()
    last_sync = promotion.last_sync

    async def slow(*arguments: Any) -> Any:
        link.source.make("aab", 1)
        link.process.assign(link.replicas())
        await asyncio.sleep(10)
        return await last_sync(*arguments)

    monkeypatch.setattr(promotion, "last_sync", slow)

    async def run(running: operation.Operation) -> Any:
        running.choice = operation.Choice("aa.*", yes=True)
        return await run_command(running, failover)

    report = link.command(run)
    assert [record.state for record in report.states] == [CopyState.PROMOTED]


def test_case_764_the_dry_run_of_a_promotion_that_was_killed_refuses_what_the_next_run_refuses() -> None:
    # The dry run said that it would promote.
    link = Begun()

    async def until_fenced(running: operation.Operation) -> None:
        await running.lanes.read()
        await promotion._fail_over_as_planned(running, ["aaa"])

    link.command(until_fenced)
    link.write_singly(1)
    with pytest.raises(LinkRefused, match="still takes writes"):
        link.command(promote, dry_run=True)
    with pytest.raises(LinkRefused, match="still takes writes"):
        link.command(promote)


def cut_by_a_power_loss(link: Begun, offset: int) -> None:
    """Every broker of the source comes back, and nobody was there to elect another leader (KRaft before 3.7)."""
    link.log.truncate(offset)
    link.source.changed(link.log)


def test_case_765_a_failover_names_what_a_source_lost_under_the_same_leader_epoch() -> None:
    # Only under another leader epoch was it noticed.
    link = Begun()
    link.command(failover)
    cut_by_a_power_loss(link, 6)
    (loss,) = link.command(failover).losses
    assert "the source has lost records that were copied" in loss.fault


def test_case_766_a_failback_brings_back_what_a_source_lost_under_the_same_leader_epoch() -> None:
    # Only the copy has them, and the source never got them back; the release before compared the ends.
    link = Begun()
    link.destination.make(link.naming.offsets_topic, 1, {"cleanup.policy": "compact"})
    link.command(failover)
    cut_by_a_power_loss(link, 6)
    link.write_copy(3)
    link.command(failback)
    assert sum(entry.last - entry.base + 1 for entry in link.log.entries if not entry.marker) == 13
