"""Random histories of operators' commands, and what these say of both logs, record by record (invariant N).

Not played, as the commands cannot tell it: a log that is cut under the same leader and written on before an election;
a copy that so loses the marker of its newest transaction alone, which a promotion takes for one on its way. Before a
failback the operator aborts transactions that hang, as it waits for these without end.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from appliance.commands.failback import beginning as failback_beginning
from appliance.commands.failback.failback import failback
from appliance.commands.failback.model import failback_plan
from appliance.commands.failback.model.failback_plan import PromotedLogs
from appliance.commands.failback.model.failback_report import ReturnedPartition
from appliance.commands.failback.reverse_link import ReverseLink
from appliance.commands.model.loss import PartitionLoss
from appliance.commands.model.position_change import Place
from appliance.commands.pause import set_paused
from appliance.commands.promotion import failover, promote
from appliance.commands.removal import remove_topics
from appliance.commands.reset import reset
from appliance.commands.resumption import RETRY, Choice, resume
from appliance.commands.run import operation
from appliance.commands.run.link_lanes import LinkLanes
from appliance.errors import ApplianceError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.copy_states import CopyEvent, CopyState, effective
from appliance.link.model.position import Position
from tests.simulation import log as logs
from tests.simulation.log import Log, Record
from tests.simulation.loop import Life, time_of_day
from tests.simulation.operator_commands import simulated
from tests.simulation.scenario import Begun
from tests.support.operating import run_command

_SEEDS = 30
_STEPS = 16
_WITHIN = 60
_HANGS = 200.0
"""Longest time of a command, in simulated seconds."""

_TOPIC, _COPY = "aaa", "aaa.copy"
_REMOVED = 0.05
"""Probability that the topic is removed next."""
_PLACES = ("earliest", "latest", "offset")
_OF_ITS_OWN = (CopyState.PROMOTED, CopyState.FAILING_BACK)


class Side:
    """A log, and what has befallen its records: ``held`` are all that it ever had, ``excused`` those it need not have.

    Records are excused by the operator's choice, or once a command has said that they are not there.
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        self.held: set[Record] = set()
        self.deleted: set[Record] = set()
        self.excused: set[Record] = set()

    @property
    def records(self) -> list[Record]:
        return [record for _, record in seen(self.log)]

    def lacks(self, records: Iterable[Record]) -> set[Record]:
        """Those that this log should have."""
        return {*records} - {*self.records} - self.deleted - self.excused

    def retention(self, offset: int) -> None:
        before = {*self.records}
        self.log.delete_before(offset)
        self.deleted |= before - {*self.records}


class CommandHistory(Begun):
    """One history: a step after the other, each told in ``steps``."""

    def __init__(self, seed: int) -> None:
        super().__init__(starts=False)
        self.steps = [f"seed {seed}"]
        self.pick = random.Random(seed)
        self.destination.delete(self.positions.name)
        self.process.start(None)
        self.at = Side(self.log)
        self.go_on(3)
        self.copy = Side(self.destination.topics[_COPY].logs[0])
        self.at_copy: dict[Record, int] = {}
        """The records of producers at the copy, with their offsets there."""
        self.doubled: Counter[Record] = Counter()
        """The times that the operator had a record copied again."""
        self.unled: set[Log] = set()
        self.look()

    def play(self) -> None:
        """Do something at random, and look at it."""
        always = [self.write_source, self.copy_on, self.cut_source, self.cut_copy, self.retain_source, self.retain_copy]
        match self.state:
            case CopyState.ACTIVE:
                follows = [self.write_source, self.copy_on, self.promote, self.fail_over, self.fail_over]
                steps = always + follows + [self.reset_to, self.resume_at, self.resume_at]
            case CopyState.PROMOTED | CopyState.FAILING_BACK:
                steps = [*always, *[self.write_the_copy, self.fail_back] * 3, self.fail_over, self.promote]
            case _:
                steps = [self.write_source, self.fail_over, self.restore, self.restore]
        if self.pick.random() < _REMOVED:
            steps = [self.remove]
        self.pick.choice(steps)()
        self.look()

    def require(self, holds: bool, said: object, true: object) -> None:
        if not holds:
            told = "\n".join(self.steps)
            raise AssertionError(f"{told}\nsaid: {said}\ntrue: {true}\nsource: {self.shown(self.at)}\n"
                                 f"copy: {self.shown(self.copy)}")  # fmt: skip

    @staticmethod
    def shown(side: Side) -> str:
        held = " ".join(f"{offset}:{short(record)}" for offset, record in seen(side.log))
        return f"from {side.log.start} to {side.log.end}, epoch {side.log.leader_epoch}: {held}"

    def look(self) -> None:
        """Nothing is doubled, but by the operator's choice."""
        for side in (self.at, self.copy):
            side.held |= {*side.records}
            doubled = [short(r) for r, n in Counter(side.records).items() if n > 1 + self.doubled[r]]
            self.require(not doubled, "", f"doubled in {side.log}: {doubled}")

    @property
    def state(self) -> CopyState:
        async def read(running: operation.Operation) -> CopyState:
            await running.lanes.read()
            return effective(running.lanes.states, _TOPIC)

        found: CopyState = self.command(read)
        return found

    @property
    def next_offset(self) -> int:
        """The source offset from which on nothing is copied yet; -1 if nobody knows."""

        async def read(running: operation.Operation) -> int:
            await running.lanes.read()
            held = running.lanes.positions.get(Partition(_TOPIC, 0))
            return -1 if held is None else held.next_offset

        found: int = self.command(read)
        return found

    # What befalls the logs

    def write_source(self) -> None:
        count = self.pick.randint(1, 8)
        self.elect(self.log)
        self.steps.append(f"write {count} at the source, from {self._written}")
        for _ in range(count):
            self.write(self.log)

    def write_the_copy(self) -> None:
        if self.state not in _OF_ITS_OWN:
            return
        count, log = self.pick.randint(1, 5), self.copy.log
        self.elect(log)
        self.steps.append(f"write {count} into the copy, from {self._written}")
        for _ in range(count):
            end = log.end
            self.write_copy(1)
            self.at_copy[seen(log)[-1][1]] = end

    def elect(self, log: Log) -> None:
        """A log that was cut without an election has one before it is written on, or nobody could ever tell."""
        if log in self.unled:
            (self.source if log is self.log else self.destination).lead(log, log.leader)
            self.unled.remove(log)

    def cut_source(self) -> None:
        self.cut(self.at)
        if self.pick.random() < 0.6:
            self.write_source()

    def cut_copy(self) -> None:
        self.cut(self.copy)

    def cut(self, side: Side) -> None:
        self.look()
        log = side.log
        offset, elected = self.pick.randint(max(log.start, log.end - 5), log.end), self.pick.random() < 0.7
        log.truncate(offset)
        if log.epochs[-1][0] < log.leader_epoch:  # who comes back as the leader begins its epoch again
            log.epochs.append((log.leader_epoch, log.end))
        self.steps.append(f"{log} is cut at {offset}, ends at {log.end}{', with an election' if elected else ''}")
        self.unled.add(log)
        if elected or log.open:  # a marker that is lost alone, under the same leader, may be on its way
            self.elect(log)
        else:
            (self.source if side is self.at else self.destination).changed(log)

    def retain_source(self) -> None:
        self.retain(self.at)

    def retain_copy(self) -> None:
        self.retain(self.copy)

    def retain(self, side: Side) -> None:
        offset = self.pick.randint(side.log.start, side.log.end)
        side.retention(offset)
        self.steps.append(f"{side.log} starts at {offset}")

    def copy_on(self) -> None:
        """A link that copies, and names no fault, lacks nothing."""
        for _ in range(5):
            self.go_on(3)
            state, faults, position = self.state, self.faults(), self.next_offset
            if state is not CopyState.ACTIVE or faults or position == self.log.end:
                break
        copy = self.destination.topics.get(_COPY)
        if copy is not None and copy.logs[0] is not self.copy.log:  # it was deleted with the topic
            self.copy = Side(copy.logs[0])
        self.steps.append(f"copied: {state}, up to {position} {faults}")
        if state is CopyState.ACTIVE and not faults:
            self.at.excused -= self.before(position)
            lacking = self.copy.lacks(self.at.records) - self.copy.held  # a loss is noticed when there is more
            self.require(not lacking, "no fault", f"the copy lacks {shorts(lacking)}")

    def end_hanging(self) -> None:
        """The operator aborts the transactions whose markers a log has lost, which nobody else ends."""
        self.go_on(5)
        for log, brokers in ((self.log, self.source), (self.copy.log, self.destination)):
            for producer in list(log.open):
                self.elect(log)
                epoch = log.producers[producer].epoch
                log.mark(producer, epoch, False)
                self.steps.append(f"the hanging transaction of {log} is aborted")
                brokers.changed(log)

    # Commands

    def done(self, what: str, command: Callable[[operation.Operation], Awaitable[Any]], kill: int = 0,
             **options: Any) -> Any:  # fmt: skip
        """The report of a command, or None if it is refused, or killed after so many steps."""
        life, loop = Life("operator"), self.loop

        async def run() -> Any:
            choice = operation.Choice(_TOPIC, yes=True, wait=3.0, **options)
            async with operation.operation(self.settings, choice, self.tell) as running:
                return await run_command(running, command)

        told = ", ".join(name for name, value in options.items() if value)
        with simulated(self.source, self.destination, self.fates):
            task, last, until = loop.start(life, run()), loop.steps + kill, loop.time() + _HANGS
            loop.run_while(lambda: not task.done() and (not kill or loop.steps < last) and loop.time() < until)
        if not task.done():
            life.alive = False
            self.steps.append(f"{what} {told} killed after {kill} steps")
            self.require(kill > 0, f"{what} {told}", "it hangs")
            self.go_on(5)
            return None
        try:
            report = task.result()
        except ApplianceError as error:
            self.steps.append(f"{what} {told} refused: {error}")
            return None
        self.steps.append(f"{what} {told}: {shown(report)}")
        return report

    def tell(self, line: str) -> None:
        self.steps.append(f"  {line}")

    def promote(self) -> None:
        self.promoted("promote", promote)

    def fail_over(self) -> None:
        self.promoted("failover", failover)

    def promoted(self, what: str, command: Callable[[operation.Operation], Awaitable[Any]]) -> None:
        planned, allowed = self.pick.random() < 0.3, self.pick.random() < 0.3
        report = self.done(what, command, dry_run=planned, allow_loss=allowed)
        if report is None:
            return
        for loss in report.losses:
            self.judge(loss)
            if what == "promote" and report.states and not planned and not allowed:
                self.require((loss.fault, loss.unknown, loss.behind) == ("", "", 0), loss, "it has promoted")

    def judge(self, loss: PartitionLoss) -> None:
        """What a promotion says of both logs."""
        lacking, lost = self.copy.lacks(self.at.records), self.at.lacks(self.copied)
        if loss.behind is not None:
            self.require(loss.behind >= len(lacking), loss, f"the copy lacks {shorts(lacking)}")
        if not (loss.fault or loss.unknown):
            self.require(loss.behind is not None, loss, "nothing is known, and nothing says why")
            self.require(not lost, loss, f"the source has lost {shorts(lost)}")
        if loss.lost_at_source is not None:
            self.require(loss.lost_at_source >= len(lost), loss, f"the source has lost {shorts(lost)}")

    @property
    def copied(self) -> set[Record]:
        """The copy's records that the source has had."""
        return {*self.copy.records} & self.at.held

    def fail_back(self) -> None:
        allowed, kill = self.pick.random() < 0.5, self.pick.random() < 0.4
        if self.state not in _OF_ITS_OWN:
            return
        self.end_hanging()
        planned = self.done("failback", failback, dry_run=True, allow_loss=allowed)
        first, before = self.state is CopyState.PROMOTED, Counter(self.at.records)
        report = self.done("failback", failback, kill=self.pick.randint(1, 3000) if kill else 0, allow_loss=allowed)
        if report is None or _TOPIC not in report.returned:
            return
        self.require(planned is not None or kill, report, "the dry run had refused it")
        for found in report.partitions:
            self.returned(found, allowed)
            new = (Counter(self.at.records) - before).total()
            self.require(not first or found.copied_back == new, found, f"{new} records have come to the source")
            if planned is not None and not kill and planned.partitions:
                self.require(planned.partitions[0].diverged == found.diverged, planned, found)

    def returned(self, found: ReturnedPartition, allowed: bool) -> None:
        """What a failback says of both logs."""
        lost = self.at.lacks(self.copy.records)
        self.require(not lost, found, f"the source lacks {shorts(lost)}")
        gone = {
            r for r in self.copy.deleted & self.at_copy.keys() if r not in self.at.held and r not in self.at.excused
        }
        unsaid = [r for r in gone if not within(self.at_copy[r], found.deleted)]
        self.require(not unsaid, found, f"retention has taken {shorts(unsaid)} from the copy")
        self.at.excused |= gone
        next_offset = self.next_offset
        there = {record: offset for offset, record in seen(self.log)}
        lacking = self.copy.lacks(record for record, offset in there.items() if offset < next_offset)
        spans = found.diverged, found.written_there
        unsaid = [r for r in lacking if not any(within(there[r], span) for span in spans)]
        if allowed:  # what the copy has lost was refused without the operator's choice
            unsaid = [r for r in unsaid if r not in self.copy.held]
        self.require(not unsaid, found, f"the copy lacks {shorts(unsaid)}")
        copies = [r for r, offset in there.items() if within(offset, found.diverged) and r in self.copy.records]
        copies = [r for r in copies if not self.doubled[r]]
        self.require(not copies, found, f"the copy has {shorts(copies)}")
        self.copy.excused |= lacking

    def choose(self) -> None:
        """The operator has copying go on elsewhere: what lies before that is left out, what comes may be doubled."""
        position = self.next_offset
        self.copy.excused |= self.before(position) - {*self.copy.records}
        self.copy.held |= {*self.copy.records}
        self.doubled.update({*self.at.records} & self.copy.held)
        self.at.excused |= {*self.copy.records} - self.before(position)

    def before(self, offset: int) -> set[Record]:
        return {record for at, record in seen(self.log) if at < offset}

    def place(self) -> str:
        chosen = self.pick.choice(_PLACES)
        return str(self.pick.randint(self.log.start, self.log.end)) if chosen == "offset" else chosen

    def reset_to(self) -> None:
        to = self.place()
        if self.done(f"reset --to {to}", lambda running: reset(running, Place.parse("--to", to), None)) is not None:
            self.choose()

    def resume_at(self) -> None:
        start = self.pick.choice((RETRY, self.place()))
        number = self.pick.choice((None, 0))
        what = f"resume --partition {number} --from {start}"
        with simulated(self.source, self.destination, self.fates):
            try:
                changed = self.run(resume(self.settings, Choice(_TOPIC, number, start), self.tell))
            except ApplianceError as error:
                self.steps.append(f"{what} refused: {error}")
                return
        self.steps.append(f"{what}: {changed}")
        if changed:
            self.choose()

    def remove(self) -> None:
        deletes = self.pick.random() < 0.4
        what = f"rm-topic{' --delete-copies' if deletes else ''}"
        report = self.done(what, lambda running: remove_topics(running, delete_copies=deletes))
        if report is None:
            return
        (given_up,) = report.removed
        self.require(given_up.deleted == (_COPY not in self.destination.topics), given_up, "the copy is there, or not")
        alone = {*self.copy.records} - self.at.held
        self.require(not (given_up.deleted and alone), given_up, f"the copy alone had {shorts(alone)}")

        async def positions(running: operation.Operation) -> Any:
            await running.lanes.read()
            return [partition for partition in running.lanes.positions if partition[0] == _TOPIC]

        left = self.command(positions)
        self.require(not left, given_up, f"positions of {left} are left")
        self.at.excused |= {*self.copy.records} | self.at_copy.keys()

    def restore(self) -> None:
        if self.state is CopyState.REMOVED:
            self.done("resume --removed", lambda running: set_paused(running, CopyEvent.RESTORE))
            self.copy_on()


def shown(report: Any) -> str:
    parts = getattr(report, "losses", ()) or getattr(report, "partitions", ()) or getattr(report, "removed", ())
    return " ".join(str(each) for each in parts) or "done"


def seen(log: Log) -> list[tuple[int, Record]]:
    """The records that a consumer sees; what retention has taken of a batch may still be in the file."""
    return [each for each in logs.seen(log) if each[0] >= log.start]


def within(offset: int, span: tuple[int, int] | None) -> bool:
    return span is not None and span[0] <= offset < span[1]


def short(record: Record) -> str:
    return str(record[0] - 1_700_000_000_000)


def shorts(records: Iterable[Record]) -> list[str]:
    return sorted(map(short, records), key=int)


def play(seed: int) -> CommandHistory:
    random.seed(seed)
    history = CommandHistory(seed)

    with time_of_day(history.loop, 1_700_000_000):
        for _ in range(_STEPS):
            history.play()
    history.loop.close()
    return history


def play_all(first: int, seeds: int) -> None:
    for seed in range(first, first + seeds):
        play(seed)


def test_what_commands_say_is_true_of_both_logs_record_by_record_in_random_histories() -> None:
    play_all(0, _SEEDS)


def ends_taken_for_agreement(patch: pytest.MonkeyPatch) -> None:
    """A failback takes what both logs hold up to the lower end for the same."""
    patch.setattr(failback_beginning, "divergence_offset", by_ends)
    patch.setattr(failback_plan, "divergence_offset", by_ends)


def by_ends(forward: Position, found: PromotedLogs) -> int:
    return min(forward.next_offset, found.source_end.offset)


def positions_left(patch: pytest.MonkeyPatch) -> None:
    """A removal forgets no position."""

    async def forget_nothing(*_: object) -> None:
        pass

    patch.setattr(LinkLanes, "forget", forget_nothing)


def deletions_unsaid(patch: pytest.MonkeyPatch) -> None:
    """A failback goes on after what the copy has lost, or retention has taken from it, and does not say so."""
    patch.setattr(failback_beginning, "_lacking", lambda *_: [])
    patch.setattr(ReverseLink, "deleted", lambda *_: None)


@pytest.mark.parametrize(
    ("mutation", "first"), [(ends_taken_for_agreement, 24), (positions_left, 0), (deletions_unsaid, 0)]
)
def test_a_command_made_wrong_is_caught_by_what_both_logs_hold(
    mutation: Callable[[pytest.MonkeyPatch], None], first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(AssertionError, match="said: "):
        play_all(first, _WITHIN)
