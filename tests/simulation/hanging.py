"""Transactions that hang: what somebody's delayed Produce has left open, which no coordinator ends (KAFKA-14402)."""

from appliance.kafka.protocol.metadata import Partition
from appliance.kafka.records.batch import restamp
from appliance.kafka.records.records import Record, body, pack
from tests.simulation.brokers import Brokers
from tests.simulation.link import Link
from tests.simulation.log import Log

_FOREIGN = 9000
_LATE_AFTER = 0.5
_ENDED_AFTER = (0.1, 0.3, 2.0)


class Hanging:
    """Leaves transactions open on either side of a link, and finds and ends them."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._left = 0

    def leave_one(self) -> None:
        """A batch of some producer that is not ours, in a topic of either side, or among the positions.

        In a copy that has no position yet the partition would wait for the operator: it is not known to be empty.
        """
        link = self._link
        known = {Partition(link.naming.destination(topic), number) for topic, number in link.invariants.positions}
        logs = [(link.source, log) for log in link.source.logs()]
        logs += [(link.destination, log) for log in link.destination.logs() if (log.topic, log.number) in known]
        if positions := link.destination.topics.get(link.naming.positions_topic):
            logs += [(link.destination, log) for log in positions.logs]
        cluster, log = link.chance.choice(logs)
        self._left += 1
        producer = _FOREIGN + self._left
        self._append(cluster, log, producer, 0)
        link.at(link.loop.time() + link.chance.choice(_ENDED_AFTER), lambda: _abort(cluster, log, producer))

    def leave_late(self, topic: str) -> None:
        """A batch of an earlier epoch of ours comes to a copy that was deleted, as soon as it is made anew."""
        link = self._link
        copy = link.destination.topics.get(link.naming.destination(topic))
        if copy is None:
            link.at(link.loop.time() + _LATE_AFTER * link.chance.random(), lambda: self.leave_late(topic))
            return
        log = link.chance.choice(copy.logs)
        name = link.naming.transactional_id(link.invariants.layout.lane_of(topic, log.number))
        known = link.destination.coordinator.transactions.get(name)
        if known is not None and known.epoch > 0 and (topic, log.number) in link.invariants.positions:
            self._append(link.destination, log, known.producer, known.epoch - 1)

    def end_all(self) -> None:
        """Do as kafka-transactions.sh does with those that hang: abort them."""
        for cluster in (self._link.source, self._link.destination):
            for log in cluster.logs():
                for producer in list(log.open):
                    of_workload = cluster is self._link.source and producer < _FOREIGN
                    if not of_workload and not cluster.coordinator.holds(producer, log):
                        _abort(cluster, log, producer)

    def _append(self, cluster: Brokers, log: Log, producer: int, epoch: int) -> None:
        data = bytearray(pack([Record(0, 1_700_000_000_000, body(b"late", b"of nobody"))], 0))
        restamp(data, producer, epoch, 0)
        code, offset = log.append(data)
        cluster.changed(log)
        self._link.fates.note("a late batch in", log, "of", producer, "epoch", epoch, code.name, offset)


def _abort(cluster: Brokers, log: Log, producer: int) -> None:
    if producer in log.open:
        log.mark(producer, log.producers[producer].epoch, committed=False)
        cluster.changed(log)
