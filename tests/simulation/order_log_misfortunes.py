"""The faults of the topics of an order: retention, partitions added, topics made anew, records lost, logs deleted."""

from collections.abc import Callable, Mapping

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.order import Origin
from tests.simulation.brokers import NODES
from tests.simulation.log import Log
from tests.simulation.order_world import OrderWorld

RETENTION, OLD_COPIES, GROWN, REMADE, LOSSES, DELETED = "retention", "copies", "grown", "remade", "losses", "deleted"


class OrderLogMisfortunes:
    """Injects them; each method is one of them, for one cluster."""

    def __init__(self, world: OrderWorld) -> None:
        self._world, self._chance = world, world.chance
        self.acts: Mapping[str, Callable[[str], None]] = {
            RETENTION: self._delete_old,
            OLD_COPIES: self._delete_old_copies,
            GROWN: self._grow,
            REMADE: self._remake,
            LOSSES: self._lose,
            DELETED: self._delete,
        }

    def _log(self, name: str) -> Log:
        world = self._world
        return self._chance.choice(world.brokers[name].topics[self._chance.choice(world.topics())].logs)

    def _delete_old(self, name: str) -> None:
        """Retention of T at an origin, whoever has taken what it deletes."""
        log = self._log(name)
        if log.entries:
            log.delete_before(self._chance.choice(log.entries).base)
            self._world.fates.note("retention:", name, log, "starts at", log.start)

    def _delete_old_copies(self, name: str) -> None:
        """Retention of a T-global; the last cluster has all of it, and nothing goes that this one has not shown."""
        world, log = self._world, self._log(name)
        key = world.key(log)
        shown, whole = (
            world.brokers[each].log(Partition(f"{key.topic}-global", key.number)) for each in self._two(name)
        )
        truth, end = world.truths[key], world.watch.end(name, key)
        places = truth.places.get(shown, [])[: truth.ranks.get(whole, 0)] if shown and whole else []
        if shown and places and name != world.names[-1]:
            shown.delete_before(min(end, self._chance.choice(places)))
            world.fates.note("retention:", name, shown, "starts at", shown.start)

    def _two(self, name: str) -> tuple[str, str]:
        return name, self._world.names[-1]

    def _grow(self, name: str) -> None:
        """T gets a partition in one cluster."""
        world, topic = self._world, self._chance.choice(self._world.topics())
        if len(world.brokers[name].topics[topic].logs) < 3:
            world.grow_topic(name, topic)
            world.fates.note("grown:", name, topic, len(world.brokers[name].topics[topic].logs))

    def _remake(self, name: str) -> None:
        """Somebody deletes T in one cluster and makes it anew (invariant G)."""
        topic = self._chance.choice(self._world.topics())
        self._world.remake_topic(name, topic)
        self._world.fates.note("made anew:", name, topic)

    def _lose(self, name: str) -> None:
        """T of one cluster loses records that it had acknowledged."""
        world, log = self._world, self._log(name)
        if log.entries:
            end = log.end
            log.truncate(self._chance.choice(log.entries[-6:]).base)
            world.truths[world.key(log)].truncated(Origin(name, log.number))
            world.workloads[name].truncated(log)
            world.brokers[name].lead(log, self._chance.choice(NODES))
            world.fates.note("truncated:", name, log, "from", end, "to", log.end)

    def _delete(self, name: str) -> None:
        """Somebody deletes T-global in one cluster: its lane stops, and the others go on.

        An empty partition would go on, too, and what it shows would not be looked at.
        """
        world, topic = self._world, self._chance.choice(self._world.topics())
        shown = world.brokers[name].topics.get(f"{topic}-global")
        if shown is None or not all(world.watch.end(name, Partition(topic, log.number)) for log in shown.logs):
            return
        if not world.damaged and len(world.names) > 2:
            world.damage(name, topic)
            world.fates.note("deleted:", name, shown.name)
