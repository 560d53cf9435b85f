"""For every kind of stop, each remedy that the status prints is run as it is printed, and the partition goes on."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from rich.console import Console

from appliance.commands.pause import set_paused
from appliance.commands.promotion import failover, promote
from appliance.engine.model.ranges import Outcome, Range
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_runner import LaneRunner
from appliance.errors import BrokerBusy, SettingsError
from appliance.kafka.records.records import body
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.stops import StopKind
from appliance.program import PROGRAM
from appliance.status.model.document import document
from appliance.status.model.messages import remedies
from appliance.status.model.snapshot import LinkState
from appliance.status.model.table import rendered
from tests.simulation.scenario import copied
from tests.simulation.stopping import Stop, Stopped, lost
from tests.support.record_batches import outgoing_of, records_of

FAILED_BACK = 1, 2
"""The remedies of ``AFTER_FAILBACK`` that only real brokers play: test_case_169_what_a_slow_producer_writes_to_the_copy
types them."""


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (kind, number)
        for kind in StopKind
        for number in range(len(kind.remedies))
        if kind is not StopKind.AFTER_FAILBACK or number not in FAILED_BACK
    ],
    ids=lambda each: each.name if isinstance(each, StopKind) else str(each),
)
def test_case_840_what_the_status_prints_for_a_stop_lets_the_partition_go_on(
    kind: StopKind, number: int, stopped: Stop
) -> None:
    # No remedy was printed, and the page's one stopped again at the same offset.
    link = stopped(kind)
    if kind is StopKind.ANOTHERS:
        assert link.snapshot().topics[0].stopped is not None
    else:
        assert link.partition().stopped is not None
    found = link.remedies
    assert len(found) == len(kind.remedies)
    if "--from" not in found[number].arguments:
        link.mend()
    before = link.copy_count
    assert link.type(found[number].command) == 0
    if not link.process.runs or kind in (StopKind.LOST_AT_SOURCE, StopKind.LOST_ON_BOTH):
        link.restart()
    link.write_singly(2)
    link.go_on(20)
    after = link.partition()
    assert (after.stopped, after.lag_records) == (None, 0), link.faults()
    assert link.copy_count > before


def test_case_841_resume_alone_retries_the_stopped_partitions_of_every_topic(
    stopped: Stop, capsys: pytest.CaptureFixture[str]
) -> None:
    # "nothing of the link is paused, and no partition of it is stopped", where two were.
    link = stopped(StopKind.REFUSED)
    link.mended = True
    assert link.type(f"{PROGRAM} resume --dry-run") == 0
    assert link.partition().stopped is not None
    assert link.type(f"{PROGRAM} resume") == 0
    assert "aaa-0 goes on from offset 11" in capsys.readouterr().out
    link.go_on(20)
    assert link.partition().stopped is None
    assert link.type(f"{PROGRAM} resume") == 0


@pytest.mark.parametrize("topic", [" --topic aaa", ""])
def test_case_842_where_a_retry_would_stop_again_it_is_refused_with_what_helps(topic: str, stopped: Stop) -> None:
    # The retry was accepted, and the partition stopped again at the same offset.
    link = stopped(StopKind.DELETED)
    (remedy,) = link.remedies
    for option in (" --dry-run", ""):
        with pytest.raises(SettingsError, match=r"aaa-0: .* were deleted at the source.*--from earliest") as refusal:
            link.type(f"{PROGRAM} resume{topic}{option}")
        assert str(remedy) in str(refusal.value)
    assert link.partition().stopped is not None


def test_the_json_has_the_remedies_of_the_table(stopped: Stop) -> None:
    link = stopped(StopKind.DELETED)
    shown: Any = document(link.snapshot())
    (remedy,) = link.remedies
    assert shown["topics"][0]["partitions"][0]["remedies"] == [{"effect": remedy.effect, "command": remedy.command}]


@pytest.mark.parametrize("command", ["resume", "reset"])
def test_case_843_a_position_that_is_moved_back_leaves_no_gap(command: str, link: Stopped) -> None:
    # The ledger said for ever that "offset 10 and what followed it will never be copied".
    link.resume("4") if command == "resume" else link.reset("4")
    link.go_on(5)
    assert link.copy_count == 16
    assert link.gaps == []
    link.resume("10")
    assert link.gaps == []


@pytest.mark.parametrize(("to", "gap"), [("latest", [(6, 12)]), ("8", [(6, 8)]), ("6", [])])
@pytest.mark.parametrize("command", ["resume", "reset"])
def test_case_844_after_a_truncation_the_gap_begins_where_the_logs_diverge(
    command: str, to: str, gap: list[tuple[int, int]], stopped: Stop
) -> None:
    # The gap was said to begin at the position, 10: of offsets 6 to 9, which were written anew, nobody knew.
    link = stopped(StopKind.TRUNCATED)
    link.resume(to) if command == "resume" else link.reset(to)
    assert link.gaps == gap
    link.write(link.log)
    link.go_on(5)
    assert link.copy_count == 10 + (13 - (12 if to == "latest" else int(to)))


def test_case_845_a_topic_made_anew_with_fewer_partitions_is_no_dead_end(monkeypatch: pytest.MonkeyPatch) -> None:
    # Partition 1 was unknown for ever; resume knew no such partition, promote refused, and nothing named a way out.
    link = Stopped(monkeypatch, starts=False)
    link.source.grow("aaa", 2)
    link.write(link.source.topics["aaa"].logs[1], 3)
    link.process.start(None)
    link.go_on(5)
    link.recreate(4)
    link.go_on(20)
    assert link.snapshot().state is LinkState.STOPPED
    partitions = link.snapshot().topics[0].partitions
    assert [each.stopped is not None for each in partitions] == [True, True]
    for each in partitions:
        (remedy,) = remedies(each)
        assert link.type(remedy.command) == 0
    link.go_on(20)
    found = link.snapshot()
    assert found.state is LinkState.COPIED
    assert [[(gap.first, gap.next) for gap in each.gaps or ()] for each in found.topics[0].partitions] == [
        [(10, -1)],
        [(3, -1)],
    ]
    assert link.copy_count == 14
    report = link.command(promote, dry_run=True)
    assert [(loss.partition, loss.behind) for loss in report.losses] == [(0, 0)]
    link.source.grow("aaa", 2)
    link.write(link.source.topics["aaa"].logs[1], 2)
    link.go_on(20)
    assert copied(link, "aaa.copy", 1) == 5
    assert link.snapshot().state is LinkState.COPIED


def test_case_848_what_is_read_before_a_damaged_batch_is_copied(stopped: Stop) -> None:
    # Of a Fetch with a damaged batch nothing was copied: the remedy had left out all that came before it.
    link = stopped(StopKind.UNREADABLE)
    assert link.copy_count == 11
    found = link.partition()
    assert found.next_offset == 11
    assert found.stopped is not None
    assert "the batch at offset 11 does not fit its bytes; what follows begins at offset 12" in found.stopped.reason


def refuse(link: Stopped, number: int) -> list[int]:
    """Let the copy take no batch with the record of this number; the sizes of what it refuses."""
    sizes, unwanted = list[int](), body(None, b"%d" % number)

    def refuses(data: bytes) -> ErrorCode | None:
        if unwanted not in data:
            return None
        sizes.append(len(data))
        return ErrorCode.message_too_large

    link.copy_log.refuses = refuses
    return sizes


@pytest.mark.parametrize(("sizes", "tries"), [((1, 1, 1), 2), ((20, 20, 20), 3), ((3000,), 4)])
def test_case_881_passing_a_refused_record_by_the_printed_remedy_leaves_out_that_one_alone(
    sizes: Sequence[int], tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The remedy left out all that was coalesced with it, and the rest of its batch.
    link, unwanted = Stopped(monkeypatch), 11 + sum(sizes) // 3
    refused = refuse(link, unwanted)
    for size in sizes:
        link.write(link.log, size)
    link.go_on(20)
    assert len(refused) == tries
    assert link.position().records == unwanted
    assert link.type(link.remedies[1].command) == 0
    link.require_well((unwanted, unwanted + 1))
    assert link.position().records == 10 + sum(sizes) - 1


def test_batches_of_which_the_copy_takes_the_parts_alone_are_copied(link: Stopped) -> None:
    # As where its compression.type makes them too large.
    link.copy_log.refuses = lambda data: ErrorCode.message_too_large if len(data) >= 250 else None
    for _ in range(3):
        link.write(link.log, 40)
    link.go_on(20)
    assert (link.partition().stopped, link.partition().lag_records) == (None, 0)
    assert link.position().records == 10 + 120


class OddAlone:
    """SQL that leaves out every record of an even offset."""

    async def transform(self, ranges: Sequence[Range]) -> list[Outcome]:
        return [self._outcome(each) for each in ranges]

    def _outcome(self, each: Range) -> Outcome:
        records = [record for record in records_of(each.batches) if each.start <= record.offset < each.end]
        kept = [record for record in records if record.offset % 2]
        return Outcome(outgoing_of(kept, each.end) if kept else (), each.end, len(records) - len(kept))


def test_case_883_of_what_the_sql_made_the_refused_record_alone_is_left_out(link: Stopped) -> None:
    # The batch named was another one: what was made of several begins behind the first of them.
    link.transform(OddAlone())
    refuse(link, 35)
    for _ in range(2):
        link.write(link.log, 20)
    link.go_on(20)
    assert link.position().records == 10 + 12
    assert link.type(link.remedies[1].command) == 0
    link.require_well((35, 36))
    assert link.position().records == 10 + 20 - 1


def test_case_1041_a_lane_forgets_the_trial_that_an_error_has_ended_which_is_not_the_sqls(
    link: Stopped, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It counted as a failure of the SQL on the record.
    tried: list[object] = []

    async def make_room(*given: object) -> None:
        tried.append(given)
        raise BrokerBusy("aaa.copy", "NOT_ENOUGH_REPLICAS")

    link.transform(OddAlone())
    monkeypatch.setattr("appliance.engine.write.transactions.make_room", make_room)
    before = link.position()
    link.write(link.log, 20)
    link.go_on(20)
    assert link.position() == before
    assert len(tried) > 1


@pytest.mark.parametrize("number", [0, 1])
def test_case_884_what_the_operator_does_while_the_lane_is_cold_ends_the_stop(
    number: int, stopped: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only a lane that found itself fenced forgot the refused batch: another one's task failed for ever.
    runners: list[LaneRunner] = []
    run, start, busy = LaneRunner.run, Lane.start, False

    async def running(self: LaneRunner, stopping: asyncio.Event) -> None:
        runners.append(self)
        await run(self, stopping)

    async def starting(self: Lane) -> None:
        if busy and self is runners[-1].lane:
            raise BrokerBusy("the coordinator is loading", "COORDINATOR_LOAD_IN_PROGRESS")
        await start(self)

    monkeypatch.setattr(LaneRunner, "run", running)
    monkeypatch.setattr(Lane, "start", starting)
    link = stopped(StopKind.REFUSED)
    busy, before = True, link.position().records
    runners[-1].lane.restart()  # as when a copy's leader changes
    link.go_on(2)
    link.mended = number == 0
    assert link.type(link.remedies[number].command) == 0
    busy = False
    link.write_singly(2)
    link.go_on(60)
    assert (link.partition().stopped, link.process.runs) == (None, True)
    assert link.position().records == before + 4 - number


def test_case_849_a_dry_run_foretells_the_state_in_which_the_command_ends(link: Stopped) -> None:
    # "the link: would be failing over".
    for run in (promote, failover):
        assert "aaa: would be promoted" in list(link.command(run, dry_run=True).lines())


def test_case_850_the_status_of_one_paused_topic_is_headed_by_its_own_state(link: Stopped) -> None:
    # "replicator-orange: inactive", while the link copied all others.
    link.source.make("bbb", 1)
    link.command(lambda running: set_paused(running, CopyEvent.PAUSE))
    shown = Console(width=200)
    with shown.capture() as text:
        shown.print(rendered(link.snapshot().only(["aaa"])))
    assert text.get().startswith("replicator-orange, aaa: paused at ")


@pytest.mark.parametrize("number", [0, 1])
def test_case_913_a_loss_that_only_the_status_has_seen_is_ended_by_what_it_prints(number: int, link: Stopped) -> None:
    # No lane had stopped for it: the command changed nothing, and the lane stopped for it when it next began.
    link.process.kill()
    link.go_on(1)
    lost(link)
    link.go_on(5)
    assert link.type(link.remedies[number].command) == 0
    link.restart()
    link.go_on(20)
    assert link.partition().stopped is None
    assert len(link.partition().gaps or ()) == (number == 0)


@pytest.mark.parametrize("to", ["10", "earliest"])
def test_case_914_a_reset_of_a_copy_that_has_lost_records_leaves_the_gap_and_the_map_that_a_resume_leaves(
    to: str, stopped: Stop
) -> None:
    # It left neither: the map went on translating to records that are gone.
    link = stopped(StopKind.LOST)
    link.log.delete_before(2)
    link.reset(to)
    link.go_on(20)
    assert link.partition().stopped is None
    (gap,) = link.partition().gaps or ()
    assert "has lost what it had acknowledged" in gap.cause


def test_case_915_what_is_left_out_without_a_position_is_in_the_ledger_as_it_was_printed(stopped: Stop) -> None:
    # No gap was in the ledger.
    link = stopped(StopKind.NO_POSITION)
    _, latest = link.remedies
    assert latest.effect.endswith("it goes to the gap ledger")
    assert link.type(latest.command) == 0
    link.go_on(20)
    assert link.gaps == [(10, 10)]


def test_case_916_what_a_copy_that_was_made_anew_has_lost_is_in_the_ledger_as_it_was_printed(link: Stopped) -> None:
    # No gap was in the ledger.
    link.log.delete_before(5)
    link.destination.delete("aaa.copy")
    link.process.assign(link.replicas())
    link.go_on(20)
    (remedy,) = link.remedies
    assert remedy.effect.endswith("what it lost goes to the gap ledger")
    assert link.type(remedy.command) == 0
    link.require_well((5, 5))
