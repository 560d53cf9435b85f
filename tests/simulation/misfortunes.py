"""The faults of a link by name, and their random injection."""

from collections.abc import Callable
from typing import Any

from kio.schema.add_partitions_to_txn.v3 import AddPartitionsToTxnRequest
from kio.schema.end_txn.v3 import EndTxnRequest
from kio.schema.init_producer_id.v4 import InitProducerIdRequest

from appliance.settings.values import OnGap, Start
from tests.simulation.administration import Administration
from tests.simulation.brokers import Brokers
from tests.simulation.faults import (
    COMPACTION,
    COORDINATORS,
    CRASHES,
    GROUPS,
    HANGING,
    LAYOUTS,
    LEADERS,
    LOSSES,
    OTHERS,
    POSITIONS,
    REMADE,
    REQUESTS,
    RESUMES,
    RETENTION,
    RIVALS,
    STATES,
    TOPICS,
    TRUNCATIONS,
)
from tests.simulation.hanging import Hanging
from tests.simulation.link import Link
from tests.simulation.log_misfortunes import LogMisfortunes
from tests.simulation.operator_commands import Operator
from tests.simulation.process import Replicator, settings
from tests.simulation.readers import Readers
from tests.simulation.workload import Workload

EVENTFUL = 1.5
"""Virtual seconds in which things go wrong."""

_COORDINATED = (None, InitProducerIdRequest, AddPartitionsToTxnRequest, EndTxnRequest, EndTxnRequest)
_OPERATOR_AFTER = 8.0
_RESTARTED_AFTER = 0.3


class Misfortunes:
    """Injects ``faults``, and lets producers write meanwhile."""

    def __init__(self, link: Link, faults: set[str]) -> None:
        self.faults = faults
        self.operator = Operator(link)
        self._hanging = Hanging(link)
        self._logs = LogMisfortunes(link)
        self._link = link
        self._readers = Readers(link)

    def check(self) -> None:
        """Raise what a command, or the sync of groups, has ended by."""
        self.operator.check()
        self._readers.consumers.check()

    def at_rest(self) -> None:
        """Hold the groups against the logs."""
        self._readers.at_rest()

    def schedule(self) -> None:
        """Decide when what happens."""
        self._often(4, 12, self._write)
        self._often(2, 6, self._link.workload.decide)
        self._often(0, self._link.chance.choice((0, 0, 1)), self.operator.translate)
        self._often(0, self._link.chance.choice((0, 0, 1)), self.operator.status)
        if REQUESTS in self.faults:
            self._link.fates.disturb(self._link.chance.choice((0.01, 0.03, 0.1)))
        if CRASHES in self.faults:
            self._often(1, 3, self._crash)
        if RIVALS in self.faults:
            self._often(1, 1, self._link.start_process)
        if LEADERS in self.faults:
            self._link.fates.lag = 0.3
            self._often(1, 4, self._logs.move_leader)
        if LOSSES in self.faults:
            self._often(1, 2, self._logs.lose)
        if TRUNCATIONS in self.faults:
            self._often(1, 2, self._logs.truncate)
        if RETENTION in self.faults:
            self._link.may_stop = self._link.may_stop or self._link.on_gap is OnGap.STOP
            self._often(1, 2, self._logs.delete_old)
            self._often(0, 2, self._logs.delete_old_copies)
        if COMPACTION in self.faults:
            self._often(2, 6, self._logs.compact)
            self._often(0, 2, self._logs.renew)
        if RESUMES in self.faults:
            self._often(1, 3, self.operator.resume)
        if STATES in self.faults:
            self._often(1, 3, self.operator.change_state)
        if GROUPS in self.faults:
            self._link.at(0.3 * self._link.chance.random(), self._readers.consumers.sync)
            self._often(4, 10, self._readers.consume)
        if HANGING in self.faults:
            self._link.destination.be_old()
            self._often(1, 2, self._hanging.leave_one)
        if COORDINATORS in self.faults:
            self._often(1, 5, self._move_coordinator)
        if self._link.own:
            self._schedule_for_link()

    def _schedule_for_link(self) -> None:
        if TOPICS in self.faults:
            self._often(1, 2, self._new_partitions)
        if REMADE in self.faults:
            self._link.may_stop = self._link.may_stop or self._link.on_gap is OnGap.STOP
            self._often(1, 1, self._remake)
        if POSITIONS in self.faults and REMADE not in self.faults:  # without copies it would be a new link
            self._often(1, 1, self._damage_positions)
        if LAYOUTS in self.faults and POSITIONS not in self.faults:  # a command may outlast the topic that it has read
            self._often(1, 3, self.operator.change_lanes)
            self._often(0, self._link.chance.choice((0, 0, 2)), self._place_by_load)
        if OTHERS in self.faults and not self.faults & {TOPICS, REMADE}:
            self._often(1, 1, self._start_other)

    def _often(self, least: int, most: int, act: Callable[[], Any]) -> None:
        for _ in range(self._link.chance.randint(least, most)):
            self._link.at(EVENTFUL * self._link.chance.random(), act)

    def _write(self) -> None:
        self._link.workload.write(self._link.chance.choice(list(self._link.source.logs())))

    def _crash(self) -> None:
        if self.operator.is_busy and self._link.chance.random() < 0.5:
            self._link.fates.note("kill the operator's command")
            self.operator.kill()
            return
        if GROUPS in self.faults and self._link.chance.random() < 0.5:
            self._readers.consumers.crash()
        running = [process for process in self._link.processes if process.runs]
        if running:
            process = self._link.chance.choice(running)
            self._link.fates.note("kill", process.life.name)
            process.kill()
            self._link.at(
                self._link.loop.time() + _RESTARTED_AFTER * self._link.chance.random(), self._link.start_process
            )

    def _place_by_load(self) -> None:
        """A replicator, not always the newest one, places partitions in other lanes by itself, as older releases do."""
        chance, running = self._link.chance, [process for process in self._link.processes if process.runs]
        if running:
            keys = [(log.topic, log.number) for log in self._link.source.logs()]
            chance.choice(running).place({key: chance.randrange(self._link.invariants.layout.lanes) for key in keys})

    def _move_coordinator(self) -> None:
        coordinator = self._link.destination.coordinator
        names = list(coordinator.transactions)
        if names:
            name, kind = self._link.chance.choice(names), self._link.chance.choice(_COORDINATED)
            self._link.fates.note("another coordinator of", name, "at its next", kind.__name__ if kind else "request")
            if kind is None:
                coordinator.move(name)
            else:
                coordinator.move_at(name, kind)

    def _new_partitions(self) -> None:
        topics = list(self._link.source.topics.values())
        if len(topics) < 3 and self._link.chance.random() < 0.5:
            self._link.make_at_source(f"new-{len(topics)}", self._link.chance.choice((1, 2)))
        else:
            topic = self._link.chance.choice(topics)
            self._link.source.grow(topic.name, len(topic.logs) + 1)
            self._link.invariants.watch(topic)
        self._link.fates.note("topics:", *(log for log in self._link.source.logs()))

    def _remake(self) -> None:
        """Somebody deletes a topic and makes it anew under its name (invariant G)."""
        topic = self._link.chance.choice(list(self._link.source.topics.values()))
        if self._link.chance.random() < 0.5:
            for log in topic.logs:
                self._link.invariants.current[log.topic, log.number].learn()
            for log in topic.logs:
                self._link.befell(log.topic, log.number)
            self._link.source.delete(topic.name)
            self._link.make_at_source(topic.name, len(topic.logs))
            self._link.fates.note("made anew:", topic.name)
        elif (copy := self._link.destination.topics.get(self._link.naming.destination(topic.name))) is not None:
            self._link.destination.delete(copy.name)
            for log in topic.logs:
                self._link.befell(log.topic, log.number)
            self._link.invariants.remade.add(topic.name)
            if HANGING in self.faults:
                self._hanging.leave_late(topic.name)
            self._link.fates.note("deleted:", copy.name)

    def _damage_positions(self) -> None:
        """While no replicator runs, the positions topic is deleted, or grown (invariant H)."""
        name = self._link.naming.positions_topic
        if name not in self._link.destination.topics:
            return
        for process in self._link.processes:
            process.kill()
        if self._link.chance.random() < 0.5:
            self._link.destination.delete(name)
            self._link.invariants.is_emptied = True
        else:
            self._link.destination.grow(name, len(self._link.destination.topics[name].logs) + 1)
        self._link.damaged = True
        self._link.fates.note("damaged:", name)
        self._link.at(self._link.loop.time() + _RESTARTED_AFTER, self._link.start_process)

    def _start_other(self) -> None:
        """Another link, whose topics have the same names, comes with the same suffix (invariant I)."""
        if any(partition not in self._link.invariants.positions for partition in self._link.invariants.current):
            self._link.at(self._link.loop.time() + 0.1, self._start_other)  # whoever comes first has the copies
            return
        lemon = Brokers("lemon", self._link.later, lambda _: None)
        Administration(lemon)
        for topic in self._link.source.topics.values():
            for log in lemon.make(topic.name, len(topic.logs)).logs:
                Workload(lemon, self._link.chance).write(log)
        known = settings("lemon", self._link.on_gap, Start.EARLIEST, self._link.lanes)
        other = Replicator(1, lemon, self._link.destination, self._link.fates, known)
        self._link.others.append(other)
        self._link.fates.note("start of another link")
        other.start(None)

    def calm(self) -> None:
        """End all faults, and all open transactions of the source."""
        self._link.fates.note("calm")
        self._link.fates.calm()
        while self._link.workload.decide():
            pass
        self._supervise()
        if RESUMES in self.faults:
            act = self.operator.adopt if self._link.damaged else self.operator.resume_stopped
            self.operator.plan(2 * self._link.chance.random(), act)
        if STATES in self.faults:
            self.operator.plan(0.2 * self._link.chance.random(), self.operator.settle_states)
        if LAYOUTS in self.faults and POSITIONS not in self.faults and self._link.own:
            self.operator.plan(0.5 * self._link.chance.random(), self.operator.settle_lanes)
        self._link.at(self._link.loop.time() + _OPERATOR_AFTER, self._operate)

    def _supervise(self) -> None:
        """Start the replicator again when none runs, unless its link is refused."""
        if not any(process.runs for process in self._link.processes) and not self._link.refused():
            self._link.start_process()
        self._link.at(self._link.loop.time() + 1.0, self._supervise)

    def _operate(self) -> None:
        """The operator does what log lines ask for: grows copies that nobody has claimed, ends hanging transactions."""
        self.operator.grow_copies()
        self._hanging.end_all()
        self._link.at(self._link.loop.time() + _OPERATOR_AFTER, self._operate)
