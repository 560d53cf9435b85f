"""``resume``, ``reset`` and the dry run of ``promote`` at losses, retention, former leaders and kills."""

import contextlib
import re
from dataclasses import replace
from typing import Any

import pytest

from appliance.commands.pause import set_paused
from appliance.commands.promotion import promote
from appliance.commands.run.link_lanes import LinkLanes
from appliance.engine.model import map_growth
from appliance.engine.write.lane import Lane
from appliance.errors import (
    ApplianceError,
    BrokerBusy,
    BrokerRefused,
    LinkRefused,
    OutcomeUnknown,
    SettingsError,
    Unreachable,
)
from appliance.groups import group_io
from appliance.kafka.client import groups as kafka_groups
from appliance.kafka.protocol.metadata import Metadata, Partition
from appliance.link.client.offset_maps import OffsetMaps
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.stops import StopKind
from appliance.link.model.translation import TranslationState
from appliance.program import PROGRAM
from appliance.settings.values import OnGap, Side, Start
from appliance.status.model.messages import remedies as printed_of
from tests.simulation.brokers import NODES
from tests.simulation.groups import Groups
from tests.simulation.log import seen
from tests.simulation.process import settings
from tests.simulation.stopping import Stop, Stopped, lost, refuse, unaccounted


def test_case_922_resume_of_a_paused_topic_does_not_accept_a_loss_that_nobody_was_shown(link: Stopped) -> None:
    # The command that only ends a pause took the copy's new end: the choice to copy all again was never offered.
    link.command(lambda running: set_paused(running, CopyEvent.PAUSE))
    link.go_on(2)
    lost(link)
    link.go_on(2)
    assert link.type(f"{PROGRAM} resume --topic aaa") == 0
    link.go_on(20)
    held = link.partition()
    assert held.stopped is not None, held.gaps
    assert "has lost what it had acknowledged" in held.stopped.reason


def test_case_923_a_retry_at_a_new_copy_that_no_lane_has_seen_writes_no_gap_as_it_changes_nothing(
    link: Stopped,
) -> None:
    # It wrote a gap, and changed nothing.
    link.process.kill()
    link.destination.delete("aaa.copy")
    link.replicas()
    with contextlib.suppress(SettingsError):
        link.type(f"{PROGRAM} resume --topic aaa --partition 0")
    link.restart()
    link.go_on(20)
    assert link.type(link.remedies[0].command) == 0  # --from earliest, which copies all again
    link.go_on(20)
    assert link.copy_count == 10
    assert link.gaps == []


def test_case_923_a_retry_at_a_new_source_that_no_lane_has_seen_writes_its_gap_once(link: Stopped) -> None:
    # Each retry wrote the gap again, and changed nothing.
    link.process.kill()
    link.recreate(3)
    for _ in range(2):
        with contextlib.suppress(SettingsError):
            link.type(f"{PROGRAM} resume --topic aaa --partition 0")
    link.restart()
    link.go_on(20)
    assert link.type(link.remedies[0].command) == 0
    link.go_on(20)
    assert link.gaps == [(10, -1)]


@pytest.mark.parametrize("command", ["resume", "reset"])
def test_case_924_a_former_leader_makes_no_loss_for_a_command(command: str, link: Stopped) -> None:
    # ``agree`` says "metadata name a former leader"; ``with_losses`` takes its shorter log for the copy's.
    copy = link.copy_log
    former = link.destination.metadata(None)
    (other,) = {*NODES[:2]} - {copy.leader}
    link.destination.lead(copy, other, unnoticed=True)
    link.write_singly(3)
    link.go_on(3)
    assert link.copy_count == 13
    assert copy.former is not None
    told = link.destination.metadata

    def lagging(names: Any, behind: int = 0) -> Metadata:
        now = told(names, behind)
        if names == ["aaa.copy"]:
            return replace(now, topics={"aaa.copy": former.topics["aaa.copy"]})
        return now

    link.destination.metadata = lagging  # type: ignore[method-assign]
    with contextlib.suppress(ApplianceError):
        link.resume("4") if command == "resume" else link.reset("4")
    link.destination.metadata = told  # type: ignore[method-assign]
    copy.former = None
    link.go_on(20)
    shown = link.partition()
    assert shown.stopped is None, shown.stopped
    assert link.copy_count == 22
    assert shown.gaps == ()


def test_case_924_a_dry_run_that_finds_a_marker_on_its_way_says_nothing_untrue(
    link: Stopped, capsys: pytest.CaptureFixture[str]
) -> None:
    link.holds_markers = True
    link.write_singly(1)
    link.go_on(2)
    assert link.held
    link.destination.lead(link.copy_log, link.copy_log.leader)
    assert link.partition().stopped is None
    link.type(f"{PROGRAM} resume --dry-run")
    assert "aaa-0" not in capsys.readouterr().out


def test_case_925_a_loss_after_a_stop_for_unaccounted_records_is_in_the_ledger(link: Stopped) -> None:
    # The stop hid the loss, of which the ledger said nothing.
    unaccounted(link)
    link.go_on(20)
    link.process.kill()
    held = link.position()
    assert held.copy_end is not None
    link.lose_copy(4)
    assert link.copy_log.end < held.copy_end.offset
    assert link.type(link.remedies[0].command) == 0
    link.restart()
    link.go_on(20)
    shown = link.partition()
    assert shown.stopped is not None or shown.gaps, (link.copy_count, shown)


@pytest.mark.parametrize("kind", [StopKind.UNACCOUNTED, StopKind.AFTER_FAILBACK, StopKind.TRUNCATED, StopKind.REFUSED])
def test_case_926_a_printed_remedy_works_also_after_the_retention_of_the_source(kind: StopKind, stopped: Stop) -> None:
    link = stopped(kind)
    link.write_singly(5)
    link.log.delete_before(link.log.end - 1)
    remedy = next(each for each in link.remedies if re.search(r"--from \d", each.arguments))
    assert link.type(remedy.command) == 0
    if not link.process.runs:
        link.restart()
    link.go_on(20)
    assert link.partition().stopped is None


def test_case_927_a_reset_moves_a_partition_that_is_there_if_its_copy_was_made_anew(link: Stopped) -> None:
    link.process.kill()
    link.destination.delete("aaa.copy")
    link.replicas()
    link.reset("10")
    link.restart()
    link.go_on(20)
    assert link.partition().stopped is None


def with_a_group(link: Stopped) -> None:
    """Let the groups of the link follow; the source has one."""
    link.settings = settings("orange", OnGap.STOP, Start.EARLIEST, 1, ".*")
    at_source = Groups(link.source, lambda *_: None)
    Groups(link.destination, lambda *_: None)
    at_source.commit("readers", ("aaa", 0), 3)


@pytest.mark.parametrize("dry_run", [False, True])
def test_case_921_a_dry_run_refuses_no_promotion_for_a_coordinator_that_loads_for_a_moment(
    dry_run: bool, link: Stopped, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_group(link)
    listed, begun = kafka_groups._listed_by, []

    async def loading(cluster: Any, node: int) -> Any:
        if cluster.side is Side.SOURCE and len(begun) < 3:
            begun.append(node)
            return BrokerBusy("list groups: COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS")
        return await listed(cluster, node)

    monkeypatch.setattr(kafka_groups, "_listed_by", loading)
    link.command(promote, dry_run=dry_run)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("what", ["groups of the destination", "offsets of a group"])
def test_case_921_a_dry_run_foretells_each_refusal_for_groups_that_are_not_told(
    dry_run: bool, what: str, link: Stopped, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_group(link)
    if what == "offsets of a group":

        async def unread(_: Any, groups: Any) -> Any:
            return {}, {each.name: BrokerRefused("no", "GROUP_AUTHORIZATION_FAILED") for each in groups}

        monkeypatch.setattr(group_io, "read_offsets", unread)
    else:
        listed = kafka_groups._listed_by

        async def silent(cluster: Any, node: int) -> Any:
            return Unreachable("silent") if cluster.side is Side.DESTINATION else await listed(cluster, node)

        monkeypatch.setattr(kafka_groups, "_listed_by", silent)
    with pytest.raises(LinkRefused, match="offsets are not told"):
        link.command(promote, dry_run=dry_run)


@pytest.mark.parametrize("dies_after", [0, 1])
def test_a_killed_reset_writes_each_gap_once(dies_after: int, link: Stopped, monkeypatch: pytest.MonkeyPatch) -> None:
    link.process.kill()
    lost(link)
    link.write_singly(5)
    moves = LinkLanes.move

    async def move(self: Any, *arguments: Any) -> None:
        if dies_after:
            await moves(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(LinkLanes, "move", move)
    with contextlib.suppress(KeyboardInterrupt):
        link.reset("12")
    monkeypatch.setattr(LinkLanes, "move", moves)
    link.reset("12")
    link.restart()
    link.require_well((10, 12))


def untrue(link: Stopped) -> list[tuple[int, int]]:
    """The exact translations to what is not there, or is another record."""
    maps = OffsetMaps(link.at_destination, link.naming)
    assert link.run(maps.refresh()) == {}
    copy = dict(seen(link.copy_log))
    found = []
    held = maps.position(Partition("aaa", 0))
    assert held is not None
    for offset, record in seen(link.log):
        if offset >= held.next_offset:
            continue
        to = maps.translate(Partition("aaa", 0), offset)
        if to.state is TranslationState.EXACT and (to.offset not in copy or copy[to.offset] != record):
            found.append((offset, to.offset))
    return found


def shortened(link: Stopped, monkeypatch: pytest.MonkeyPatch, *, is_known: bool) -> None:
    """A copy of three transactions, of which the last two are lost; nobody has seen that."""
    copy = link.copy_log
    first = copy.end
    for _ in range(2):
        link.write_singly(3)
        link.go_on(2)
    link.process.kill()
    link.go_on(1)
    end = copy.end
    link.lose_copy(first)
    if not is_known:

        async def unanswered(*_: object) -> tuple[dict[Any, int], dict[Any, ApplianceError]]:
            return {}, {}

        for module in ("engine.write.copies", "link.client.log_ends"):
            monkeypatch.setattr(f"appliance.{module}.epoch_ends", unanswered)
        while copy.end < end - 2:
            link.write(copy)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(
    ("command", "start"),
    [("resume", "retry"), *((c, s) for c in ("resume", "reset") for s in ("earliest", "4", "12", "16", "latest"))],
)
@pytest.mark.parametrize("size", [1, None])
def test_no_map_leads_to_records_that_are_gone(
    command: str, start: str, size: int | None, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    if size:
        monkeypatch.setattr(map_growth, "TAIL_BYTES", size)
        monkeypatch.setattr(map_growth, "SEGMENT_BYTES", size)
    link = Stopped(monkeypatch)
    shortened(link, monkeypatch, is_known=is_known)
    link.resume(start) if command == "resume" else link.reset(start)
    link.go_on(2)
    assert untrue(link) == []
    link.restart()
    link.write_singly(3)
    link.go_on(20)
    assert link.partition().stopped is None
    assert untrue(link) == []


@pytest.mark.parametrize("kind", ["unaccounted", "refused"])
def test_no_map_leads_to_records_that_a_copy_has_lost_after_another_stop(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_growth, "TAIL_BYTES", 1)
    monkeypatch.setattr(map_growth, "SEGMENT_BYTES", 1)
    link = Stopped(monkeypatch)
    first = link.copy_log.end
    for _ in range(2):
        link.write_singly(3)
        link.go_on(2)
    unaccounted(link) if kind == "unaccounted" else refuse(link, 17)
    link.go_on(20)
    assert link.partition().stopped is not None
    link.process.kill()
    link.go_on(1)
    link.lose_copy(first)
    link.mended = True
    assert link.type(link.remedies[0].command) == 0
    link.go_on(2)
    link.restart()
    link.write_singly(3)
    link.go_on(20)
    assert untrue(link) == []


@pytest.mark.parametrize("copy_too", [False, True])
def test_a_partition_that_is_gone_goes_on_also_where_no_lane_has_seen_that(
    monkeypatch: pytest.MonkeyPatch, *, copy_too: bool
) -> None:
    link = Stopped(monkeypatch, starts=False)
    link.source.grow("aaa", 2)
    link.write(link.source.topics["aaa"].logs[1], 3)
    link.process.start(link.replicas())
    link.go_on(5)
    link.process.kill()
    link.recreate(4)
    if copy_too:
        link.destination.delete("aaa.copy")
        link.replicas()
    for each in link.snapshot().topics[0].partitions:
        (remedy,) = printed_of(each)
        assert link.type(remedy.command) == 0
    link.restart()
    link.go_on(20)
    partitions = link.snapshot().topics[0].partitions
    assert [each.stopped for each in partitions] == [None, None]
    assert [[(gap.first, gap.next) for gap in each.gaps or ()] for each in partitions] == [[(10, -1)], [(3, -1)]]


def test_a_loss_and_then_retention_leaves_its_gap_and_goes_on(stopped: Stop) -> None:
    link = stopped(StopKind.LOST)
    link.write_singly(5)
    link.log.delete_before(13)
    link.resume("earliest")
    link.require_well((10, 13))


def test_a_reset_over_a_truncation_and_a_loss_begins_its_gap_where_the_logs_diverge(link: Stopped) -> None:
    link.process.kill()
    lost(link)
    link.lose(6)
    link.reset("8")
    link.restart()
    link.go_on(20)
    assert link.partition().stopped is None
    (gap,) = link.partition().gaps or ()
    assert (gap.first, gap.next) == (6, 8)
    assert "has lost what it had acknowledged" in gap.cause


@pytest.mark.parametrize("start", ["12", "10", "4"])
@pytest.mark.parametrize("before", [False, True])
def test_a_reset_of_which_an_outcome_is_unknown_moves_once_and_writes_its_gap_once(
    start: str, link: Stopped, monkeypatch: pytest.MonkeyPatch, *, before: bool
) -> None:
    link.process.kill()
    lost(link)
    link.write_singly(5)
    replace_of, times = Lane.replace, []

    async def replaced(self: Lane, *arguments: Any) -> None:
        times.append(1)
        if not (before and len(times) == 1):
            await replace_of(self, *arguments)
        if len(times) == 1:
            raise OutcomeUnknown("no answer", "CONCURRENT_TRANSACTIONS")

    monkeypatch.setattr(Lane, "replace", replaced)
    link.reset(start)
    assert len(times) == 2
    link.restart()
    link.require_well((min(10, int(start)), int(start)))
    assert link.copy_count == link.log.end - int(start)
    assert untrue(link) == []
