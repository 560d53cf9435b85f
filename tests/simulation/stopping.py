"""A link whose partition stops, one scenario for every kind of stop."""

import asyncio
import contextlib
import dataclasses
import shlex
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from appliance import command_line
from appliance.commands import resume as resume_command
from appliance.engine.model.ranges import Failure, Outcome, Range
from appliance.engine.read.buffer import Buffer
from appliance.engine.write.lane import Lane
from appliance.errors import ProducersLost
from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import Batch
from appliance.link.client.registry import Registry
from appliance.link.handle import Link
from appliance.link.model.checkpoint import Owner
from appliance.link.model.checkpoint_records import encode_position
from appliance.link.model.position import ANYBODY, CopyEnd, Position
from appliance.link.model.stops import Remedy, StopKind
from appliance.program import PROGRAM
from appliance.status.model.messages import remedies
from appliance.status.model.snapshot import Snapshot
from appliance.status.model.topic_status import PartitionStatus
from appliance.status.watcher import Watcher
from tests.simulation.operator_commands import simulated
from tests.simulation.process import Replicator
from tests.simulation.scenario import Begun


class Stopped(Begun):
    """A link of one partition; ``mended`` is set once the cause of its stop has been mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, starts: bool = True) -> None:
        super().__init__(starts=starts)
        self.monkeypatch = monkeypatch
        self.mended = False
        self.sql: Any = None
        """What its records pass after a restart."""
        self._runs = 1

    def mend(self) -> None:
        """End the cause of the stop."""
        self.mended = True

    def restart(self) -> None:
        """End the process, and start another one."""
        self.process.kill()
        self.go_on(1)
        self._runs += 1
        self.process = Replicator(self._runs, self.source, self.destination, self.fates, self.settings)
        if self.sql is not None:
            self.process.transforming = lambda _: contextlib.nullcontext(self.sql)
        self.process.start(self.replicas())

    def transform(self, sql: Any) -> None:
        """Let the link copy by this SQL from now on."""
        self.sql = sql
        self.restart()
        self.go_on(2)

    def remember(self, position: Position) -> None:
        """Write a position, as the lane that lost its newest ones has it."""
        owner = Owner("former", "worker", "host", 0, 1)
        lane: Any = Lane(0, self.at_destination, self.naming, owner, 10.0)  # type: ignore[arg-type]
        self.run(lane.start())
        self.run(lane.remember([encode_position(Partition("aaa", 0), position, 1)]))

    def snapshot(self) -> Snapshot:
        clusters: Any = self.at_source, self.at_destination
        return self.run(Watcher(Link.of(self.settings, *clusters), self.settings).collect())

    def partition(self) -> PartitionStatus:
        """The partition in the status."""
        return self.snapshot().topics[0].partitions[0]

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Its gaps in the ledger."""
        return [(gap.first, gap.next) for gap in self.partition().gaps or ()]

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What the status prints for its stop."""
        (topic,) = self.snapshot().topics
        return remedies(topic.partitions[0]) or remedies(topic)

    def require_well(self, *gaps: tuple[int, int]) -> None:
        """It goes on, and the ledger has these gaps."""
        self.go_on(20)
        assert self.partition().stopped is None
        assert self.gaps == [*gaps]

    def type(self, printed: str) -> int:
        """Run a command as it is printed; its exit code."""
        words = shlex.split(printed.removeprefix(f"{PROGRAM} "))
        parsed = command_line.parser(words[0], command_line.command(words[0])).parse_args(words)
        with simulated(self.source, self.destination, self.fates):
            return self.run(resume_command._resume(self.settings, parsed, asyncio.Event()))


def recreated(link: Stopped) -> None:
    link.recreate(3)
    link.process.assign(link.replicas())


def lost(link: Stopped) -> None:
    link.lose_copy(4)
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


def refuse(link: Stopped, number: int) -> None:
    """The copy takes no record with this number until the cause is mended, and the next records are written."""
    text = b"%d" % number
    link.copy_log.refuses = lambda data: ErrorCode.invalid_record if not link.mended and text in data else None
    link.write_singly(3)


def refused(link: Stopped) -> None:
    refuse(link, 11)


def not_transformed(link: Stopped) -> None:
    class Sql:
        async def transform(self, ranges: Sequence[Range]) -> list[Outcome]:
            return [self._outcome(each) for each in ranges]

        def _outcome(self, each: Range) -> Outcome:
            if link.mended or not each.start <= 11 < each.end:
                return Outcome(each.batches, each.end, 0)
            return Outcome((), each.start, 0, stop=Failure(11, "no number"))

    link.transform(Sql())
    link.write_singly(3)


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
    link.monkeypatch.setattr(link, "mend", lambda: setattr(entry, "data", intact))
    link.restart()


Stop = Callable[[StopKind], Stopped]
"""Gives a link that has stopped for a reason of this kind."""

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


def stopped(kind: StopKind, monkeypatch: pytest.MonkeyPatch) -> Stopped:
    link = Stopped(monkeypatch, starts=kind not in (StopKind.NO_POSITION, StopKind.ANOTHERS))
    STOPS[kind](link)
    link.go_on(20)
    return link
