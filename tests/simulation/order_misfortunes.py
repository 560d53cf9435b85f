"""The faults of clusters with one order, by name, and their random injection: of processes, tunnels and homes."""

import contextlib
from collections.abc import Callable, Collection, Mapping

from kio.schema.add_partitions_to_txn.v3 import AddPartitionsToTxnRequest
from kio.schema.end_txn.v3 import EndTxnRequest
from kio.schema.init_producer_id.v4 import InitProducerIdRequest

from appliance.errors import ApplianceError
from appliance.order.model.beats import Wish
from appliance.order.pulse import wish
from tests.simulation.brokers import NODES
from tests.simulation.order_log_misfortunes import OrderLogMisfortunes
from tests.simulation.order_world import OrderWorld

KILLS, CUTS, REQUESTS, RIVALS, LEADERS = "kills", "cuts", "requests", "rivals", "leaders"
MOVES, DUELS, USURPERS, DEATHS, TRAPS, LATE, AWAY = "moves", "duels", "usurpers", "deaths", "traps", "late", "away"
COORDINATORS = "coordinators"

WISHES = "wishes"
"""Operators move the home as planned, and end and begin memberships; some come too late."""

MAJORITY = "majority"
"""In the end one cluster is lost, and the others have to go on without it."""

_TRAPPED = ("EndTxnRequest", "EndTxnRequest", "ProduceExchange", "AddPartitionsToTxnRequest", "InitProducerIdRequest")
_COORDINATED = (None, AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest)
"""The kinds of requests that a coordinator has written down when it is one no more; None: it was asked nothing."""

_LAG = 0.3
_LONG, _SHORT = 3.0, 0.3
"""Seconds within which something that was ended begins again, or within which one thing follows the other."""

LATE_BY = 300.0
"""Seconds after the others at which a cluster starts that is late."""


class OrderMisfortunes:
    """Injects faults into a world; each method is one of them, for one cluster."""

    def __init__(self, world: OrderWorld) -> None:
        self._world, self._chance = world, world.chance
        self.acts: Mapping[str, Callable[[str], None]] = {
            KILLS: self._kill,
            CUTS: self._cut,
            REQUESTS: self._disturb,
            RIVALS: self._rival,
            LEADERS: self._lead,
            MOVES: self._stand,
            DUELS: self._duel,
            USURPERS: self._usurp,
            DEATHS: self._die_once_promised,
            TRAPS: self._trap,
            AWAY: self._leave,
            COORDINATORS: self._move_coordinator,
            WISHES: self._wish,
            **OrderLogMisfortunes(world).acts,
        }

    def befall(self, faults: Collection[str]) -> None:
        """Something happens to somebody."""
        known = sorted({*faults} & self.acts.keys())
        if known:
            self.acts[self._chance.choice(known)](self._chance.choice(self._world.names))

    def _after(self, seconds: float, act: Callable[..., None], *arguments: object) -> None:
        loop = self._world.loop
        loop.at(loop.time() + self._chance.random() * seconds, loop.world, act, *arguments)

    def _lives(self, name: str) -> bool:
        beside = self._world.beside.get(name)
        return beside is not None and beside.life.alive and not beside.task.done()

    def _others(self, name: str) -> list[str]:
        return [each for each in self._world.names if each != name]

    def _start(self, name: str) -> None:
        if not self._lives(name):
            self._world.start(name)

    def _kill(self, name: str) -> None:
        if self._lives(name):
            self._world.kill(name)
            self._after(_LONG, self._start, name)

    def _cut(self, name: str) -> None:
        if self._lives(name):
            self._world.cut(name, self._chance.choice(self._others(name)))
            if self._chance.random() < 0.5:
                self._after(_LONG, self._world.mend)

    def _disturb(self, _: str) -> None:
        self._world.fates.disturb(self._chance.choice((0.01, 0.05)))
        self._after(2.0, self._world.fates.calm)

    def _rival(self, name: str) -> None:
        """The one before goes on, and does not know that it was replaced."""
        if name in self._world.beside:
            self._world.start(name)

    def _lead(self, name: str) -> None:
        brokers = self._world.brokers[name]
        log = self._chance.choice(sorted(brokers.logs(), key=str))
        unnoticed = self._chance.random() < 0.5
        self._world.fates.lag = _LAG
        self._after(_LONG, self._world.fates.calm)
        brokers.lead(log, sum(NODES) - log.leader, unnoticed=unnoticed)
        if unnoticed:
            self._after(_LONG, setattr, log, "former", None)

    def _stand(self, name: str) -> None:
        if self._lives(name):
            self._world.fates.note("stands:", name)
            self._world.beside[name].process.stand()

    def _duel(self, name: str) -> None:
        """Several want to be home at once."""
        for each in (name, *self._others(name)):
            if each == name or self._chance.random() < 0.5:
                self._after(_SHORT, self._stand, each)

    def _usurp(self, _: str) -> None:
        """The home reaches nobody, or some do not reach it, or it is dead; and somebody else stands."""
        home = self._world.home()
        if home is None or not self._lives(home):
            return
        others = self._others(home)
        kind = self._chance.choice(("isolated", "unheard", "deaf", "dead"))
        self._world.fates.note("usurped:", home, kind)
        if kind == "dead":
            self._kill(home)
        for each in others:
            if kind in ("isolated", "deaf"):
                self._world.cut(home, each)
            if kind in ("isolated", "unheard") and (self._chance.random() < 0.7 or kind == "isolated"):
                self._world.cut(each, home)
        usurper = self._chance.choice(others)
        for _ in range(self._chance.choice((0, 0, 10, 30))):  # what the home alone has may be long
            self._after(_SHORT, self._world.write, home)
        self._after(self._chance.choice((_SHORT, _LONG)), self._stand, usurper)
        if len(others) > 1 and self._chance.random() < 0.5:
            self._after(_LONG, self._succeed, usurper)
        else:
            self._after(_LONG, self._world.mend)

    def _succeed(self, usurper: str) -> None:
        """Whoever has usurped the home is lost in its turn when the former one is back, which has heard nothing of it.

        A third one stands, or the former home.
        """
        self._world.mend()
        self._kill(usurper)
        others = self._others(usurper)
        for each in others:
            self._world.cut(each, usurper)
        self._after(_SHORT, self._stand, self._chance.choice(others))
        self._after(_LONG, self._world.mend)

    def _die_once_promised(self, name: str) -> None:
        """It stands, and is killed as soon as its promise is committed, or before it knows that."""
        if self._lives(name):
            self._stand(name)
            self._spring(name, "EndTxnRequest", self._chance.random() < 0.8)

    def _trap(self, name: str) -> None:
        """It is killed at its next request of a kind, carried out or not."""
        if self._lives(name):
            self._spring(name, self._chance.choice(_TRAPPED), self._chance.random() < 0.5)

    def _spring(self, name: str, kind: str, carried_out: bool) -> None:
        world, life = self._world, self._world.beside[name].life

        def trap(request: str, done: bool) -> None:
            if life.alive and (request, done) == (kind, carried_out):
                world.fates.note("trapped:", life.name, kind, "done" if done else "not done")
                life.alive = False
                self._after(_LONG, self._start, name)

        life.trap = trap

    def _leave(self, name: str) -> None:
        """One broker of a cluster takes and answers nothing for a while."""
        brokers = self._world.brokers[name]
        node = self._chance.choice(NODES)
        self._world.fates.note("away:", name, node)
        brokers.away.add(node)
        self._after(_LONG, brokers.away.discard, node)

    def _move_coordinator(self, name: str) -> None:
        """Another broker coordinates a lane's transactions."""
        coordinator = self._world.brokers[name].coordinator
        if coordinator.transactions:
            lane, kind = self._chance.choice(sorted(coordinator.transactions)), self._chance.choice(_COORDINATED)
            self._world.fates.note("another coordinator of", name, lane, kind.__name__ if kind else "at once")
            if kind is None:
                coordinator.move(lane)
            else:
                coordinator.move_at(lane, kind)

    def _wish(self, name: str) -> None:
        world, chance = self._world, self._chance
        if chance.random() < 0.5:
            wanted = Wish(str(world.loop.time()), name)
        else:
            others = chance.sample(self._others(name), chance.randint(1, len(world.names) - 1))
            wanted = Wish(str(world.loop.time()), members=tuple(sorted({name, *others})))
            self._after(_LONG, self._stand, chance.choice(world.names))
        world.fates.note("wished:", wanted.target, *wanted.members)
        world.loop.start(world.loop.world, self._send(chance.choice(world.names), wanted))

    async def _send(self, name: str, wanted: Wish) -> None:
        with contextlib.suppress(ApplianceError):  # the topic of beats may not be there, or its broker is away
            await wish(self._world.view(name), wanted)
