"""Histories of a watched link: one for each state that needs a person, well ones with faults that heal, random ones."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from kio.schema.create_topics.v7 import CreateTopicsRequest, CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v4 import InitProducerIdRequest

from appliance.clock import now_ms
from appliance.commands.model.position_change import Place
from appliance.commands.pause import set_paused
from appliance.commands.reset import _Run
from appliance.driver.discovery import TopicDiscovery
from appliance.errors import ApplianceError, BrokerRefused
from appliance.groups.model.group_plan import GroupPlan
from appliance.link.model.copy_states import CopyEvent
from appliance.link.model.stops import StopKind
from appliance.settings.values import OnGap
from appliance.status.model.messages import remedies
from tests.simulation.brokers import NODES
from tests.simulation.needs import LINK, Need
from tests.simulation.stopping import STOPS
from tests.simulation.watched import Watched
from tests.support.facts import ACTIVE, MEMBERS, group

Act = Callable[[Watched], Callable[[], None]]
"""It befalls a link until what it returns is called."""

Play = Callable[[pytest.MonkeyPatch], Watched]

_OWN_START = (StopKind.NO_POSITION, StopKind.ANOTHERS)


def _lasting(act: Act, minutes: float, after: float = 5) -> Play:
    """An act that is ended after some minutes."""

    def play(patch: pytest.MonkeyPatch) -> Watched:
        link = Watched(patch)
        link.minutes(3)
        end = act(link)
        link.minutes(minutes)
        end()
        link.minutes(after)
        return link

    return play


def _told(*needs: Need) -> Act:
    """The needs that no log shows, as long as an act lasts."""

    def act(link: Watched) -> Callable[[], None]:
        link.needs.others.update(needs)
        return link.needs.others.clear

    return act


def _both(*acts: Act) -> Act:
    def act(link: Watched) -> Callable[[], None]:
        ends = [each(link) for each in acts]

        def end() -> None:
            for each in ends:
                each()

        return end

    return act


def _unscraped(link: Watched) -> Callable[[], None]:
    link.console.has_target = False
    return lambda: setattr(link.console, "has_target", True)


def _killed(link: Watched) -> Callable[[], None]:
    link.restarts = None
    link.process.kill()
    return lambda: setattr(link, "restarts", 1.0)


def _stuck_console(link: Watched) -> Callable[[], None]:
    link.console.is_stuck = True

    def end() -> None:
        link.console.is_stuck = False
        link.restart()

    return end


def _ends_again_and_again(link: Watched) -> Callable[[], None]:
    """The process lives for 20 s, as one that is out of memory does."""
    link.lives = 20.0
    return lambda: setattr(link, "lives", None)


def _refused(link: Watched) -> Callable[[], None]:
    """Another partition was added to the positions topic: no replicator may go on."""
    link.restarts = 8.0
    link.destination.grow(link.naming.positions_topic, 3)
    link.needs.allowed.add(("NotCopying", LINK))
    link.restart()
    return lambda: None


def _search_denied(link: Watched) -> Callable[[], None]:
    search = TopicDiscovery.search

    async def denied(_: TopicDiscovery) -> object:
        raise BrokerRefused("the destination does not describe topics", "TOPIC_AUTHORIZATION_FAILED")

    link.monkeypatch.setattr(TopicDiscovery, "search", denied)
    return lambda: link.monkeypatch.setattr(TopicDiscovery, "search", search)


def _uncopyable(link: Watched) -> Callable[[], None]:
    """The destination makes no copy of a new topic."""
    create = link.destination.handler(CreateTopicsRequest)

    def refused(request: CreateTopicsRequest, node: int) -> CreateTopicsResponse:
        answer = create(request, node)
        for topic in request.topics:
            if str(topic.name) in link.destination.topics:
                link.destination.delete(str(topic.name))
        code = ErrorCode.invalid_replication_factor
        return replace(answer, topics=tuple(replace(each, error_code=code) for each in answer.topics))

    link.destination.handles(CreateTopicsRequest, refused)
    link.source.make("ccc", 1)
    link.needs.unfit.add("ccc")

    def end() -> None:
        link.destination.handles(CreateTopicsRequest, create)
        link.needs.unfit.clear()

    return end


def _nothing_matches(link: Watched) -> Callable[[], None]:
    link.written.clear()
    for name in [*link.source.topics]:
        link.source.delete(name)
    return lambda: setattr(link, "written", [*link.source.make("ddd", 1).logs])


def _open_transaction(link: Watched) -> Callable[[], None]:
    log = link.written[1]
    link.hold(log)
    return lambda: link.release(log)


def _killed_reset(link: Watched) -> Callable[[], None]:
    async def until_begun(running: object) -> None:
        run = _Run(running, Place.parse("--to", "8"), None)  # type: ignore[arg-type]
        await running.lanes.read()  # type: ignore[attr-defined]
        await run.find()
        await running.lanes.change(["aaa"], CopyEvent.RESET, run.details)  # type: ignore[attr-defined]

    link.command(until_begun)
    return lambda: link.reset("8")


def _groups(*groups: GroupPlan) -> Act:
    def act(link: Watched) -> Callable[[], None]:
        link.console.groups.seen(groups, ())
        return lambda: link.console.groups.seen([group("a", 70)], ())

    return act


def _groups_unseen(link: Watched) -> Callable[[], None]:
    link.console.groups.unseen(ApplianceError("the source lists no groups: CLUSTER_AUTHORIZATION_FAILED"))
    return lambda: link.console.groups.seen([group("a", 70)], ())


def _never_run(patch: pytest.MonkeyPatch) -> Watched:
    """No coordinator of the destination gives the replicator an id."""
    link = Watched(patch, starts=False)
    init = link.destination._init_producer_id

    def refused(request: InitProducerIdRequest, node: int) -> object:
        link.destination.refusal = ErrorCode.coordinator_not_available
        return init(request, node)

    link.destination.handles(InitProducerIdRequest, refused)
    link.begin()
    link.minutes(8)
    link.destination.handles(InitProducerIdRequest, init)
    link.minutes(5)
    return link


def _bounded(patch: pytest.MonkeyPatch) -> Watched:
    """Producers have written far more than MAX_BYTES_PER_SECOND lets through for a while."""
    link = Watched(patch, starts=False)
    link.settings = replace(link.settings, engine=replace(link.settings.engine, max_bytes_per_second=100))
    link.begin()
    link.minutes(3)
    for _ in range(1000):
        link.write(link.log)
    link.minutes(20)
    return link


def _gap(patch: pytest.MonkeyPatch) -> Watched:
    """Retention has outrun the link; a few minutes later its replicator is away for a minute."""
    link = Watched(patch, OnGap.RECORD)
    link.minutes(3)
    link.written = []
    end = _killed(link)
    for _ in range(5):
        link.write(link.log)
    link.log.delete_before(link.log.end - 2)
    link.minutes(1)
    end()
    link.minutes(4)
    end = _killed(link)
    link.minutes(1.5)
    end()
    link.minutes(63)
    return link


def _dead_letters(patch: pytest.MonkeyPatch) -> Watched:
    """A lane has written dead letters, as SQL in flight has it."""
    link = Watched(patch)
    link.minutes(3)
    link.process.kill()
    link.remember(replace(link.position(), dead_letters=2))
    link.begin()
    link.minutes(5)
    return link


def _stop(kind: StopKind) -> Play:
    """A stop of this kind, and the remedies that are printed for it, as far as they are played here."""

    def play(patch: pytest.MonkeyPatch) -> Watched:
        link = Watched(patch, starts=kind not in _OWN_START, bare=True)
        link.go_on(2)
        link.written = []
        STOPS[kind](link)
        if kind is StopKind.ANOTHERS:
            link.needs.unfit.add("aaa")
        link.minutes(5)
        return link

    return play


def _well(patch: pytest.MonkeyPatch) -> Watched:
    """Faults that heal before a person is needed, one after the other, and what operators do on purpose."""
    link = Watched(patch)
    link.minutes(2)
    for act in (_killed, _open_transaction, lambda _: link.silence(link.source)):
        end = act(link)
        link.go_on(25)
        end()
        link.minutes(1.5)
    end = link.silence(link.destination)
    link.go_on(25)
    end()
    end = link.take_leader(link.log)
    link.minutes(2)
    end()
    end = link.refuse_copies()
    link.minutes(1.5)
    end()
    link.fates.disturb(0.04)
    link.minutes(3)
    link.fates.calm()
    link.source.make("ccc", 1)
    link.source.grow("bbb", 3)
    link.written = [*link.source.logs()]
    link.minutes(2)
    link.command(lambda running: set_paused(running, CopyEvent.PAUSE))
    link.minutes(15)
    link.command(lambda running: set_paused(running, CopyEvent.RESUME))
    link.minutes(3)
    link.reset("4")
    link.minutes(5)
    return link


def _audit(link: Watched) -> Callable[[], None]:
    link.console.audit.path, link.console.audit.written_to = "/audit", now_ms() - 7_300_000
    return lambda: setattr(link.console.audit, "written_to", now_ms())


def _no_standby(link: Watched) -> Callable[[], None]:
    link.destination.replicators = replace(MEMBERS, members=[ACTIVE])
    return lambda: setattr(link.destination, "replicators", MEMBERS)


def _follow_remedies(link: Watched) -> None:
    """The operator runs the first command that is printed for each stopped partition."""
    for topic in link.snapshot().topics:
        for partition in topic.partitions:
            if partition.stopped and topic.active and (found := remedies(partition)):
                link.type(found[0].command)


def _copy_lost(link: Watched) -> Callable[[], None]:
    copies = [log for log in link.destination.logs() if log.topic.endswith(".copy") and log.entries and not log.open]
    if copies:
        copy = link.pick.choice(copies)
        copy.truncate(link.pick.choice(copy.entries[-4:]).base)
        link.destination.lead(copy, copy.leader)
    return lambda: _follow_remedies(link)


def _source_cut(link: Watched) -> Callable[[], None]:
    log = link.pick.choice(link.written)
    log.truncate(link.pick.choice(log.entries[-4:]).base)
    link.source.lead(log, log.leader)
    link.write(log)
    return lambda: _follow_remedies(link)


def _outrun(link: Watched) -> Callable[[], None]:
    link.process.kill()
    log = link.pick.choice(link.written)
    for _ in range(3):
        link.write(log)
    log.delete_before(log.end - 1)
    return lambda: _follow_remedies(link)


def _paused(link: Watched) -> Callable[[], None]:
    link.command(lambda running: set_paused(running, CopyEvent.PAUSE))
    return lambda: link.command(lambda running: set_paused(running, CopyEvent.RESUME))


def _disturbed(link: Watched) -> Callable[[], None]:
    link.fates.disturb(link.pick.choice((0.02, 0.05)))
    return link.fates.calm


def _leaders_move(link: Watched) -> Callable[[], None]:
    for cluster in (link.source, link.destination):
        for log in [*cluster.logs()]:
            if log.leader in NODES:
                cluster.lead(log, sum(NODES) - log.leader)
    return lambda: None


def _grown(link: Watched) -> Callable[[], None]:
    name = f"new-{len(link.source.topics)}"
    link.written += link.source.make(name, 1).logs
    link.source.grow("bbb", len(link.source.topics["bbb"].logs) + 1)
    link.written = [*link.source.logs()]
    return lambda: None


AT_ONCE: tuple[Act, ...] = (
    _killed,
    _stuck_console,
    lambda link: link.silence(link.source),
    lambda link: link.silence(link.destination),
    lambda link: link.take_leader(link.pick.choice(link.written)),
    Watched.refuse_copies,
    _open_transaction,
    _disturbed,
    _leaders_move,
    _grown,
)
ALONE: tuple[Act, ...] = (_copy_lost, _source_cut, _outrun, _paused)
"""They are ended by the operator's commands, which want both clusters."""

_EPISODES, _LONG, _ALONE = 2, 0.5, 0.35


def by_chance(seed: int, patch: pytest.MonkeyPatch) -> Watched:
    """A few acts after each other, or two at once, for some seconds or for minutes."""
    random.seed(seed)
    pick = random.Random(seed)
    link = Watched(patch, pick.choice((OnGap.STOP, OnGap.RECORD)))
    link.pick = pick
    link.minutes(1)
    for _ in range(_EPISODES):
        acts = [pick.choice(ALONE)] if pick.random() < _ALONE else pick.sample(AT_ONCE, pick.choice((1, 2)))
        ends = [act(link) for act in acts]
        link.minutes(pick.uniform(4, 8) if pick.random() < _LONG else pick.uniform(0.1, 1))
        for end in reversed(ends):
            end()
        link.minutes(3)
    return link


UNTOLD_GROUPS = ("GroupsNotSynced", LINK)
DIRECTED: dict[str, Play] = {
    "nobody scrapes": _lasting(_unscraped, 6),
    "no replicator runs": _lasting(_killed, 6),
    "the replicator looks no more": _lasting(_stuck_console, 6),
    "the replicator ends again and again": _lasting(_ends_again_and_again, 5, 18),
    "the link is refused": _lasting(_both(_refused, _told(("Silent", LINK))), 8),
    "the source does not answer": _lasting(lambda link: link.silence(link.source), 5),
    "the destination does not answer": _lasting(lambda link: link.silence(link.destination), 6),
    "nothing can be written": _lasting(Watched.refuse_copies, 8),
    "a partition has no leader": _lasting(lambda link: link.take_leader(link.log), 9),
    "a copy cannot be made": _lasting(_uncopyable, 4),
    "nothing matches": _lasting(_nothing_matches, 6),
    "the look for topics is denied": _lasting(_both(_search_denied, _told(("NotCopying", LINK))), 6),
    "it has never run": _never_run,
    "it is slower than its producers": _bounded,
    "a transaction stays open": _lasting(_open_transaction, 20),
    "retention was faster": _gap,
    "SQL has failed on records": _dead_letters,
    "a reset was killed": _lasting(_killed_reset, 35),
    "a group is refused": _lasting(
        _both(_groups(group("a", 60, refused="a share group")), _told(UNTOLD_GROUPS)), 13, 4
    ),
    "a group is unknown": _lasting(_both(_groups(group("a", 60, None)), _told(UNTOLD_GROUPS)), 13, 4),
    "nobody can see the groups": _lasting(_both(_groups_unseen, _told(UNTOLD_GROUPS)), 13, 4),
    "the audit table is not written": _lasting(_both(_audit, _told(("AuditBehind", LINK))), 20),
    "a standby is missing": _lasting(_both(_no_standby, _told(("StandbyMissing", LINK))), 6),
    "faults heal": _well,
    **{f"a stop: {kind.name}": _stop(kind) for kind in STOPS},
}
