"""For every kind of stop, each remedy that the status prints is run as it is printed, and the partition goes on."""

import asyncio
import contextlib
import dataclasses
import shlex
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from rich.console import Console

from appliance import cli
from appliance.commands import resume as resume_command
from appliance.commands.pause import set_paused
from appliance.commands.promotion import failover, promote
from appliance.engine.model.ranges import Failure, Outcome, Range
from appliance.engine.read.buffer import Buffer
from appliance.engine.task.runner import TaskRunner
from appliance.engine.write.lane import Lane
from appliance.engine.write.lane_runner import LaneRunner
from appliance.errors import BrokerBusy, ProducersLost, SettingsError
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import Batch
from appliance.kafka.records.records import body
from appliance.link.client.registry import Registry
from appliance.link.model.checkpoint import Owner
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.position import ANYBODY, CopyEnd, Position
from appliance.link.model.stops import Remedy, StopKind
from appliance.program import PROGRAM
from appliance.status.model.document import document
from appliance.status.model.messages import remedies
from appliance.status.model.snapshot import LinkState, Snapshot
from appliance.status.model.table import rendered
from appliance.status.model.topic_status import PartitionStatus
from appliance.status.watcher import Watcher
from tests.simulation import process as processes
from tests.simulation.operator_commands import simulated
from tests.simulation.process import Replicator
from tests.simulation.test_cases import copied
from tests.simulation.test_source_place_cases import Begun
from tests.support.record_batches import outgoing_of, records_of


class Stopped(Begun):
    """A link of one partition; ``mended`` is set once the cause of its stop has been mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, starts: bool = True) -> None:
        super().__init__(starts=starts)
        self.monkeypatch = monkeypatch
        self.mended = False
        self._runs = 1

    def restart(self) -> None:
        """End the process, and start another one."""
        self.process.kill()
        self.go_on(1)
        self._runs += 1
        self.process = Replicator(self._runs, self.source, self.destination, self.fates, self.settings)
        self.process.start(self.replicas())

    def remember(self, position: Position) -> None:
        """Write a position, as the lane that lost its newest ones has it."""
        owner = Owner("former", "worker", "host", 0, 1)
        lane: Any = Lane(0, self.at_destination, self.naming, owner, 10.0)  # type: ignore[arg-type]
        self.run(lane.start())
        self.run(lane.remember([encode_position(Partition("aaa", 0), position, 1)]))

    def snapshot(self) -> Snapshot:
        clusters: Any = self.at_source, self.at_destination
        return self.run(Watcher(self.settings, *clusters).collect())

    def partition(self) -> PartitionStatus:
        """What the status shows of it."""
        return self.snapshot().topics[0].partitions[0]

    def type(self, printed: str) -> int:
        """Run a command as it is printed; its exit code."""
        words = shlex.split(printed.removeprefix(f"{PROGRAM} "))
        parsed = cli._parser(words[0], cli.command(words[0])).parse_args(words)
        with simulated(self.source, self.destination, self.fates):
            return self.run(resume_command._resume(self.settings, parsed, asyncio.Event()))


def recreated(link: Stopped) -> None:
    link.source.delete("aaa")
    link.log = link.source.make("aaa", 1).logs[0]
    link.write_singly(3)
    link.process.assign(link.replicas())


def lost(link: Stopped) -> None:
    copy = link.destination.topics["aaa.copy"].logs[0]
    copy.truncate(4)
    link.destination.lead(copy, copy.leader)
    link.write(link.log)


def lost_on_both(link: Stopped) -> None:
    link.process.kill()
    link.go_on(1)
    lost(link)
    link.lose(6)


def written_after_failback(link: Stopped) -> None:
    held = link.position()
    assert held.copy_end is not None
    link.process.kill()
    end = CopyEnd(held.copy_end.offset, held.copy_end.leader_epoch, ANYBODY, -1)
    link.remember(dataclasses.replace(held, copy_end=end))
    link.write_copy(2)
    link.restart()


def unaccounted(link: Stopped) -> None:
    held = link.position()
    link.write_singly(3)
    link.go_on(2)
    link.process.kill()
    link.remember(held)
    link.restart()


def no_position(link: Stopped) -> None:
    link.replicas()
    link.write_copy(5)
    link.restart()


def deleted(link: Stopped) -> None:
    link.process.kill()
    link.write_singly(5)
    link.log.delete_before(13)
    link.restart()


def truncated(link: Stopped) -> None:
    link.lose(6)


def lost_at_source(link: Stopped) -> None:
    link.process.kill()
    link.lose(6)


def refused(link: Stopped) -> None:
    """The copy takes no record with the number 11."""
    copy = link.destination.topics["aaa.copy"].logs[0]
    append = copy.append

    def appended(data: bytes | bytearray, *rest: Any) -> tuple[ErrorCode, int]:
        refuses = not link.mended and b"11" in bytes(data)
        return (ErrorCode.invalid_record, -1) if refuses else append(data, *rest)

    link.monkeypatch.setattr(copy, "append", appended)
    link.write_singly(3)


def not_transformed(link: Stopped) -> None:
    class Sql:
        async def transform(self, ranges: Sequence[Range]) -> list[Outcome]:
            return [self._outcome(each) for each in ranges]

        def _outcome(self, each: Range) -> Outcome:
            if link.mended or not each.start <= 11 < each.end:
                return Outcome(each.batches, each.end, 0)
            return Outcome((), each.start, 0, stop=Failure(11, "no number"))

    play(link, Sql())
    link.write_singly(3)


def play(link: Stopped, sql: Any) -> None:
    """Let the link copy by this SQL from now on."""

    class Task(TaskRunner):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, transforming=lambda _: contextlib.nullcontext(sql))

    link.monkeypatch.setattr(processes, "TaskRunner", Task)
    link.restart()
    link.go_on(2)


def writers_unknown(link: Stopped) -> None:
    copied_of = Buffer._copied

    def unknown(buffer: Buffer, batches: Sequence[Batch], *rest: Any) -> Any:
        if not link.mended and batches[0].header.base_offset < 13:
            raise ProducersLost("replicator-producers lacks replicator-lemon.lane-0")
        return copied_of(buffer, batches, *rest)

    link.monkeypatch.setattr(Buffer, "_copied", unknown)
    link.write_singly(3)


def anothers(link: Stopped) -> None:
    link.replicas()
    copy = link.destination.topics["aaa.copy"]
    registry = Registry(link.at_destination, "replicator-lemon")
    assert link.run(registry.claim({copy.name: copy.id})) == {}
    link.process.start(None)


def unreadable(link: Stopped) -> None:
    """The disk of the source's leader has changed a byte of the record at offset 11."""
    link.process.kill()
    link.write_singly(3)
    entry = link.log.entries[11]
    intact = entry.data
    entry.data = bytes([*intact[:-1], intact[-1] ^ 1])

    def mend() -> None:
        entry.data = intact

    link.monkeypatch.setattr(link, "mend", mend, raising=False)
    link.restart()


STOPS: dict[StopKind, Callable[[Stopped], None]] = {
    StopKind.RECREATED: recreated,
    StopKind.LOST: lost,
    StopKind.LOST_ON_BOTH: lost_on_both,
    StopKind.AFTER_FAILBACK: written_after_failback,
    StopKind.UNACCOUNTED: unaccounted,
    StopKind.NO_POSITION: no_position,
    StopKind.DELETED: deleted,
    StopKind.TRUNCATED: truncated,
    StopKind.LOST_AT_SOURCE: lost_at_source,
    StopKind.REFUSED: refused,
    StopKind.NOT_TRANSFORMED: not_transformed,
    StopKind.WRITERS_UNKNOWN: writers_unknown,
    StopKind.ANOTHERS: anothers,
    StopKind.UNREADABLE: unreadable,
}
FAILED_BACK = 1, 2
"""The remedies of ``AFTER_FAILBACK`` that only real brokers play: test_case_169_what_a_slow_producer_writes_to_the_copy
types them."""


def stopped(kind: StopKind, monkeypatch: pytest.MonkeyPatch) -> Stopped:
    link = Stopped(monkeypatch, starts=kind not in (StopKind.NO_POSITION, StopKind.ANOTHERS))
    STOPS[kind](link)
    link.go_on(20)
    return link


def printed(link: Stopped) -> tuple[Remedy, ...]:
    (topic,) = link.snapshot().topics
    return remedies(topic.partitions[0]) or remedies(topic)


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
    kind: StopKind, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No remedy was printed, and the page's one stopped again at the same offset.
    link = stopped(kind, monkeypatch)
    if kind is StopKind.ANOTHERS:
        assert link.snapshot().topics[0].stopped is not None
    else:
        assert link.partition().stopped is not None
    found = printed(link)
    assert len(found) == len(kind.remedies)
    if "--from" not in found[number].arguments:
        link.mended = True
        getattr(link, "mend", lambda: None)()
    before = copied(link, "aaa.copy")
    assert link.type(found[number].command) == 0
    if not link.process.runs or kind in (StopKind.LOST_AT_SOURCE, StopKind.LOST_ON_BOTH):
        link.restart()
    link.write_singly(2)
    link.go_on(20)
    after = link.partition()
    assert (after.stopped, after.lag_records) == (None, 0), link.faults()
    assert copied(link, "aaa.copy") > before


def test_case_841_resume_alone_retries_the_stopped_partitions_of_every_topic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # "nothing of the link is paused, and no partition of it is stopped", where two were.
    link = stopped(StopKind.REFUSED, monkeypatch)
    link.mended = True
    assert link.type(f"{PROGRAM} resume --dry-run") == 0
    assert link.partition().stopped is not None
    assert link.type(f"{PROGRAM} resume") == 0
    assert "aaa-0 goes on from offset 11" in capsys.readouterr().out
    link.go_on(20)
    assert link.partition().stopped is None
    assert link.type(f"{PROGRAM} resume") == 1


@pytest.mark.parametrize("topic", [" --topic aaa", ""])
def test_case_842_where_a_retry_would_stop_again_it_is_refused_with_what_helps(
    topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = stopped(StopKind.DELETED, monkeypatch)
    (remedy,) = printed(link)
    for option in (" --dry-run", ""):
        with pytest.raises(SettingsError, match=r"aaa-0: .* were deleted at the source.*--from earliest") as refusal:
            link.type(f"{PROGRAM} resume{topic}{option}")
        assert str(remedy) in str(refusal.value)
    assert link.partition().stopped is not None


def test_the_json_has_the_remedies_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    link = stopped(StopKind.DELETED, monkeypatch)
    shown: Any = document(link.snapshot())
    (remedy,) = printed(link)
    assert shown["topics"][0]["partitions"][0]["remedies"] == [{"effect": remedy.effect, "command": remedy.command}]


def gaps(link: Stopped) -> list[tuple[int, int]]:
    return [(gap.first, gap.next) for gap in link.partition().gaps or ()]


@pytest.mark.parametrize("command", ["resume", "reset"])
def test_case_843_a_position_that_is_moved_back_leaves_no_gap(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The ledger said for ever that "offset 10 and what followed it will never be copied".
    link = Stopped(monkeypatch)
    link.resume("4") if command == "resume" else link.reset("4")
    link.go_on(5)
    assert copied(link, "aaa.copy") == 16
    assert gaps(link) == []
    link.resume("10")
    assert gaps(link) == []


@pytest.mark.parametrize(("to", "gap"), [("latest", [(6, 12)]), ("8", [(6, 8)]), ("6", [])])
@pytest.mark.parametrize("command", ["resume", "reset"])
def test_case_844_after_a_truncation_the_gap_begins_where_the_logs_diverge(
    command: str, to: str, gap: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The gap was said to begin at the position, 10: of offsets 6 to 9, which were written anew, nobody knew.
    link = stopped(StopKind.TRUNCATED, monkeypatch)
    link.resume(to) if command == "resume" else link.reset(to)
    assert gaps(link) == gap
    link.write(link.log)
    link.go_on(5)
    assert copied(link, "aaa.copy") == 10 + (13 - (12 if to == "latest" else int(to)))


def test_case_845_a_topic_made_anew_with_fewer_partitions_is_no_dead_end(monkeypatch: pytest.MonkeyPatch) -> None:
    # Partition 1 was unknown for ever; resume knew no such partition, promote refused, and nothing named a way out.
    link = Stopped(monkeypatch, starts=False)
    link.source.grow("aaa", 2)
    link.write(link.source.topics["aaa"].logs[1], 3)
    link.process.start(None)
    link.go_on(5)
    link.source.delete("aaa")
    link.log = link.source.make("aaa", 1).logs[0]
    link.write_singly(4)
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
    assert copied(link, "aaa.copy") == 14
    report = link.command(promote, dry_run=True)
    assert [(loss.partition, loss.behind) for loss in report.losses] == [(0, 0)]
    link.source.grow("aaa", 2)
    link.write(link.source.topics["aaa"].logs[1], 2)
    link.go_on(20)
    assert copied(link, "aaa.copy", 1) == 5
    assert link.snapshot().state is LinkState.COPIED


def test_case_848_what_is_read_before_a_damaged_batch_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of a Fetch with a damaged batch nothing was copied: the remedy had left out all that came before it.
    link = stopped(StopKind.UNREADABLE, monkeypatch)
    assert copied(link, "aaa.copy") == 11
    found = link.partition()
    assert found.next_offset == 11
    assert found.stopped is not None
    assert "the batch at offset 11 does not fit its bytes; what follows begins at offset 12" in found.stopped.reason


def refuse(link: Stopped, number: int) -> list[int]:
    """Let the copy take no batch with the record of this number; the sizes of what it refuses."""
    copy, refused = link.destination.topics["aaa.copy"].logs[0], list[int]()
    append, unwanted = copy.append, body(None, b"%d" % number)

    def appended(data: bytes | bytearray, *rest: Any) -> tuple[ErrorCode, int]:
        if unwanted not in bytes(data):
            return append(data, *rest)
        refused.append(len(data))
        return ErrorCode.message_too_large, -1

    link.monkeypatch.setattr(copy, "append", appended)
    return refused


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
    assert link.type(printed(link)[1].command) == 0
    link.go_on(20)
    assert (link.partition().stopped, gaps(link)) == (None, [(unwanted, unwanted + 1)])
    assert link.position().records == 10 + sum(sizes) - 1


def test_batches_of_which_the_copy_takes_the_parts_alone_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    # As where its compression.type makes them too large.
    link = Stopped(monkeypatch)
    copy = link.destination.topics["aaa.copy"].logs[0]
    append = copy.append

    def appended(data: bytes | bytearray, *rest: Any) -> tuple[ErrorCode, int]:
        return append(data, *rest) if len(data) < 250 else (ErrorCode.message_too_large, -1)

    monkeypatch.setattr(copy, "append", appended)
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


def test_case_883_of_what_the_sql_made_the_refused_record_alone_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The batch named was another one: what was made of several begins behind the first of them.
    link = Stopped(monkeypatch)
    play(link, OddAlone())
    refuse(link, 35)
    for _ in range(2):
        link.write(link.log, 20)
    link.go_on(20)
    assert link.position().records == 10 + 12
    assert link.type(printed(link)[1].command) == 0
    link.go_on(20)
    assert (link.partition().stopped, gaps(link)) == (None, [(35, 36)])
    assert link.position().records == 10 + 20 - 1


def test_case_1041_a_lane_forgets_the_trial_that_an_error_has_ended_which_is_not_the_sqls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[object] = []

    async def make_room(*given: object) -> None:
        tried.append(given)
        raise BrokerBusy("aaa.copy", "NOT_ENOUGH_REPLICAS")

    link = Stopped(monkeypatch)
    play(link, OddAlone())
    monkeypatch.setattr("appliance.engine.write.transactions.make_room", make_room)
    before = link.position()
    link.write(link.log, 20)
    link.go_on(20)
    assert link.position() == before
    assert len(tried) > 1


@pytest.mark.parametrize("number", [0, 1])
def test_case_884_what_the_operator_does_while_the_lane_is_cold_ends_the_stop(
    number: int, monkeypatch: pytest.MonkeyPatch
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
    link = stopped(StopKind.REFUSED, monkeypatch)
    busy, before = True, link.position().records
    runners[-1].lane.restart()  # as when a copy's leader changes
    link.go_on(2)
    link.mended = number == 0
    assert link.type(printed(link)[number].command) == 0
    busy = False
    link.write_singly(2)
    link.go_on(60)
    assert (link.partition().stopped, link.process.runs) == (None, True)
    assert link.position().records == before + 4 - number


def test_case_849_a_dry_run_foretells_the_state_in_which_the_command_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    # "the link: would be failing over".
    link = Stopped(monkeypatch)
    for run in (promote, failover):
        assert "aaa: would be promoted" in list(link.command(run, dry_run=True).lines())


def test_case_850_the_status_of_one_paused_topic_is_headed_by_its_own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    # "replicator-orange: inactive", while the link copied all others.
    link = Stopped(monkeypatch)
    link.source.make("bbb", 1)
    link.command(lambda running: set_paused(running, CopyEvent.PAUSE))
    shown = Console(width=200)
    with shown.capture() as text:
        shown.print(rendered(link.snapshot().only(["aaa"])))
    assert text.get().startswith("replicator-orange, aaa: paused at ")


@pytest.mark.parametrize("number", [0, 1])
def test_case_913_a_loss_that_only_the_status_has_seen_is_ended_by_what_it_prints(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No lane had stopped for it: the command changed nothing, and the lane stopped for it when it next began.
    link = Stopped(monkeypatch)
    link.process.kill()
    link.go_on(1)
    lost(link)
    link.go_on(5)
    assert link.type(printed(link)[number].command) == 0
    link.restart()
    link.go_on(20)
    assert link.partition().stopped is None
    assert len(link.partition().gaps or ()) == (number == 0)


@pytest.mark.parametrize("to", ["10", "earliest"])
def test_case_914_a_reset_of_a_copy_that_has_lost_records_leaves_the_gap_and_the_map_that_a_resume_leaves(
    to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It left neither: the map went on translating to records that are gone.
    link = stopped(StopKind.LOST, monkeypatch)
    link.log.delete_before(2)
    link.reset(to)
    link.go_on(20)
    assert link.partition().stopped is None
    (gap,) = link.partition().gaps or ()
    assert "has lost what it had acknowledged" in gap.cause


def test_case_915_what_is_left_out_without_a_position_is_in_the_ledger_as_it_was_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = stopped(StopKind.NO_POSITION, monkeypatch)
    _, latest = printed(link)
    assert latest.effect.endswith("it goes to the gap ledger")
    assert link.type(latest.command) == 0
    link.go_on(20)
    assert gaps(link) == [(10, 10)]


def test_case_916_what_a_copy_that_was_made_anew_has_lost_is_in_the_ledger_as_it_was_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = Stopped(monkeypatch)
    link.log.delete_before(5)
    link.destination.delete("aaa.copy")
    link.process.assign(link.replicas())
    link.go_on(20)
    (remedy,) = printed(link)
    assert remedy.effect.endswith("what it lost goes to the gap ledger")
    assert link.type(remedy.command) == 0
    link.go_on(20)
    assert link.partition().stopped is None
    assert gaps(link) == [(5, 5)]
