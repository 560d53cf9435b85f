"""What befalls a link: faults by name, and how they strike, when chance has it."""

import functools
from collections.abc import Callable
from typing import Any

from appliance.settings.values import OnGap, Start
from tests.simulation.administration import Administration
from tests.simulation.brokers import NODES, Brokers
from tests.simulation.link import Link
from tests.simulation.process import Replicator, settings
from tests.simulation.workload import Workload

REQUESTS, CRASHES, RIVALS, LEADERS, LOSSES, RETENTION, LINK, TOPICS, REMADE, POSITIONS, OTHERS = FAULTS = (
    "requests",
    "crashes",
    "rivals",
    "leaders",
    "losses",
    "retention",
    "link",
    "topics",
    "remade",
    "positions",
    "others",
)
"""What can go wrong; a seed chooses among them. Those from ``link`` on need a link that the engine itself makes."""

LIKELY = {REQUESTS: 0.6, CRASHES: 0.6, RIVALS: 0.4, LEADERS: 0.4, LOSSES: 0.1, RETENTION: 0.2, LINK: 0.15}
LIKELY |= {TOPICS: 0.5, REMADE: 0.3, POSITIONS: 0.15, OTHERS: 0.3}

EVENTFUL = 1.5
"""Virtual seconds in which things go wrong."""

_OPERATOR_AFTER = 8.0
_RESTARTED_AFTER = 0.3


class Misfortunes:
    """Those of ``faults``, and producers that write meanwhile."""

    def __init__(self, link: Link, faults: set[str]) -> None:
        self.faults = faults
        self._link = link

    def schedule(self) -> None:
        """Decide when what happens."""
        self._often(4, 12, self._write)
        self._often(2, 6, self._link.workload.decide)
        if REQUESTS in self.faults:
            self._link.fates.rate = self._link.chance.choice((0.01, 0.03, 0.1))
        if CRASHES in self.faults:
            self._often(1, 3, self._crash)
        if RIVALS in self.faults:
            self._often(1, 1, self._link.start_process)
        if LEADERS in self.faults:
            self._link.fates.lag = 0.3
            self._often(1, 4, self._move_leader)
        if LOSSES in self.faults:
            self._often(1, 2, self._lose)
        if RETENTION in self.faults:
            self._link.may_stop = self._link.may_stop or self._link.on_gap is OnGap.STOP
            self._often(1, 2, self._delete_old)
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
        if OTHERS in self.faults and not self.faults & {TOPICS, REMADE}:
            self._often(1, 1, self._start_other)

    def _often(self, least: int, most: int, act: Callable[[], Any]) -> None:
        for _ in range(self._link.chance.randint(least, most)):
            self._link.at(EVENTFUL * self._link.chance.random(), act)

    def _write(self) -> None:
        self._link.workload.write(self._link.chance.choice(list(self._link.source.logs())))

    def _crash(self) -> None:
        running = [process for process in self._link.processes if process.runs]
        if running:
            process = self._link.chance.choice(running)
            self._link.fates.note("kill", process.life.name)
            process.kill()
            self._link.at(
                self._link.loop.time() + _RESTARTED_AFTER * self._link.chance.random(), self._link.start_process
            )

    def _move_leader(self) -> None:
        cluster = self._link.chance.choice((self._link.source, self._link.destination))
        logs = list(cluster.logs())
        if not logs:
            return
        log = self._link.chance.choice(logs)
        self._link.fates.note("another leader of", cluster.name, log)
        unnoticed = self._link.chance.random() < 0.5
        cluster.lead(log, NODES[0] + NODES[1] - log.leader, unnoticed)
        if unnoticed:
            self._link.at(
                self._link.loop.time() + self._link.chance.random(), functools.partial(setattr, log, "former", None)
            )

    def _lose(self) -> None:
        """An unclean election of a copy, or a lost disk (invariant J).

        A transaction that loses its records while it is open commits nevertheless, and only a later start finds out:
        the checker, which looks at each commit, could not tell it from a defect.
        """
        copies = [
            log
            for log in self._link.destination.logs()
            if log.topic.endswith(f".{self._link.naming.suffix}") and log.entries and not log.open
        ]
        if copies:
            log = self._link.chance.choice(copies)
            entry = self._link.chance.choice(log.entries[-6:])
            self._link.fates.note("loss of", log, "from", entry.base, "to", log.end)
            self._link.lost.add(log)
            self._link.invariants.losing(log, entry.base)
            log.truncate(entry.base)
            self._link.destination.lead(log, self._link.chance.choice(NODES))

    def _delete_old(self) -> None:
        log = self._link.chance.choice(list(self._link.source.logs()))
        if log.entries:
            self._link.invariants.current[log.topic, log.number].learn()
            log.delete_before(self._link.chance.choice(log.entries).base)
            self._link.fates.note("retention:", log, "starts at", log.start)

    def _new_partitions(self) -> None:
        topics = list(self._link.source.topics.values())
        if len(topics) < 3 and self._link.chance.random() < 0.5:
            self._link.invariants.watch(self._link.source.make(f"new-{len(topics)}", self._link.chance.choice((1, 2))))
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
            self._link.source.delete(topic.name)
            self._link.invariants.watch(self._link.source.make(topic.name, len(topic.logs)))
            self._link.fates.note("made anew:", topic.name)
        elif (copy := self._link.destination.topics.get(self._link.naming.destination(topic.name))) is not None:
            self._link.destination.delete(copy.name)
            self._link.invariants.remade.add(topic.name)
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
        """Nothing goes wrong any more, and all of the source is decided."""
        self._link.fates.note("calm")
        self._link.fates.rate = self._link.fates.lag = 0.0
        while self._link.workload.decide():
            pass
        self._supervise()
        self._link.at(self._link.loop.time() + _OPERATOR_AFTER, self._operate)

    def _supervise(self) -> None:
        """Start the replicator again when none runs, unless its link is refused."""
        if not any(process.runs for process in self._link.processes) and not self._link.refused():
            self._link.start_process()
        self._link.at(self._link.loop.time() + 1.0, self._supervise)

    def _operate(self) -> None:
        """The operator does what log lines ask for: grows copies that nobody has claimed, ends hanging transactions."""
        for topic in self._link.source.topics.values():
            copy = self._link.destination.topics.get(self._link.naming.destination(topic.name))
            if copy is not None and len(copy.logs) < len(topic.logs):
                self._link.destination.grow(copy.name, len(topic.logs))
        for log in self._link.lost:
            for producer in list(log.open):
                log.mark(producer, log.producers[producer].epoch, committed=False)
                self._link.destination.changed(log)
