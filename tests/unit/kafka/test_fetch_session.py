"""A session's two ends: ours, and a broker's by KIP-227."""

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.kafka.client.fetch import FetchExchange, FetchLimits, WantedPartition
from appliance.kafka.client.fetch_session import LOST, FetchSession
from appliance.kafka.protocol.metadata import NOWHERE, Partition

LIMITS = FetchLimits(8_000_000, 0.5)
IDS = {name: uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in "abc"}
ANOTHER_ID = uuid.uuid5(uuid.NAMESPACE_DNS, "another")
EPOCH_MAX = 2**31 - 1


def wanted(topic: str, number: int = 0, position: int = 0, topic_id: uuid.UUID | None = None) -> WantedPartition:
    return WantedPartition(Partition(topic, number), topic_id or IDS[topic], position, 65_536)


def ask(session: FetchSession) -> FetchExchange:
    return session.ask(LIMITS, offers_ids=True)


def named(exchange: FetchExchange) -> list[tuple[Partition, int]]:
    return [(each.partition, each.position) for each in exchange.wanted]


@pytest.fixture
def opened() -> FetchSession:
    """A session with id 5 that requests a-0 and b-0 from offset 0."""
    session = FetchSession()
    session.want(wanted("a"))
    session.want(wanted("b"))
    exchange = ask(session)
    assert exchange.session == (0, 0)
    assert named(exchange) == [(Partition("a", 0), 0), (Partition("b", 0), 0)]
    session.note_answer(5)
    return session


def test_unchanged_partitions_are_not_named_again(opened: FetchSession) -> None:
    exchange = ask(opened)
    assert (exchange.session, exchange.wanted, exchange.forgotten) == ((5, 1), [], [])


def test_moved_and_new_partitions_are_named(opened: FetchSession) -> None:
    opened.want(wanted("b", position=7))
    opened.want(wanted("c"))
    assert named(ask(opened)) == [(Partition("b", 0), 7), (Partition("c", 0), 0)]


def test_partitions_that_are_wanted_as_before_are_not_named(opened: FetchSession) -> None:
    opened.drop(Partition("a", 0))
    opened.want(wanted("a"))
    exchange = ask(opened)
    assert (exchange.wanted, exchange.forgotten) == ([], [])


def test_a_dropped_partition_is_forgotten_once(opened: FetchSession) -> None:
    opened.drop(Partition("a", 0))
    assert ask(opened).forgotten == [wanted("a")]
    opened.note_answer(5)
    assert ask(opened).forgotten == []
    assert len(opened) == 1


def test_a_partition_that_came_and_went_between_two_fetches_is_never_named(opened: FetchSession) -> None:
    opened.want(wanted("c"))
    opened.drop(Partition("c", 0))
    opened.drop(Partition("c", 1))
    exchange = ask(opened)
    assert (exchange.wanted, exchange.forgotten) == ([], [])


def test_after_the_last_epoch_comes_the_first_one_that_is_not_of_a_full_fetch(opened: FetchSession) -> None:
    opened._epoch = EPOCH_MAX
    assert ask(opened).session == (5, EPOCH_MAX)
    opened.note_answer(5)
    assert ask(opened).session == (5, 1)


def test_a_fetch_whose_answer_was_not_heard_is_followed_by_a_full_one_in_place_of_the_session(
    opened: FetchSession,
) -> None:
    opened.want(wanted("a", position=3))
    ask(opened)
    exchange = ask(opened)
    assert exchange.session == (5, 0)
    assert sorted(named(exchange)) == [(Partition("a", 0), 3), (Partition("b", 0), 0)]
    opened.note_answer(6)
    assert ask(opened).session == (6, 1)


def test_a_new_connection_begins_with_a_full_fetch(opened: FetchSession) -> None:
    opened.restart()
    exchange = ask(opened)
    assert opened.full
    assert (exchange.session, len(exchange.wanted)) == ((5, 0), 2)


@pytest.mark.parametrize("answered", [0, 9])
def test_another_session_than_ours_is_not_gone_on_with(opened: FetchSession, answered: int) -> None:
    ask(opened)
    assert not opened.full
    opened.note_answer(answered)
    exchange = ask(opened)
    assert (exchange.session, len(exchange.wanted)) == ((answered, 0), 2)


def test_a_broker_without_room_for_a_session_is_told_everything_each_time() -> None:
    session = FetchSession()
    session.want(wanted("a"))
    for _ in range(3):
        exchange = ask(session)
        assert (exchange.session, len(exchange.wanted)) == ((0, 0), 1)
        session.note_answer(0)


def test_who_was_served_comes_last_in_a_full_fetch(opened: FetchSession) -> None:
    opened.want(wanted("a", position=9))
    opened.restart()
    assert named(ask(opened)) == [(Partition("b", 0), 0), (Partition("a", 0), 9)]


def test_a_topic_that_was_made_anew_begins_another_session(opened: FetchSession) -> None:  # invariant G
    opened.drop(Partition("a", 0))
    opened.want(wanted("a", topic_id=ANOTHER_ID))
    exchange = ask(opened)
    assert exchange.session == (5, 0)
    assert {each.topic_id for each in exchange.wanted} == {ANOTHER_ID, IDS["b"]}
    assert exchange.names == {ANOTHER_ID.bytes: "a", IDS["b"].bytes: "b"}


def test_a_session_names_topics_by_id_or_by_name_but_never_both(opened: FetchSession) -> None:
    assert ask(opened).by_id
    opened.note_answer(5)
    opened.want(wanted("c", topic_id=NOWHERE))
    exchange = ask(opened)
    assert (exchange.by_id, exchange.session, len(exchange.wanted)) == (False, (5, 0), 3)
    opened.note_answer(6)
    opened.drop(Partition("c", 0))
    exchange = ask(opened)
    assert (exchange.by_id, exchange.session, len(exchange.wanted)) == (True, (6, 0), 2)


def test_an_answer_may_be_about_whatever_was_named_since_the_session_began(opened: FetchSession) -> None:
    opened.want(wanted("c"))
    ask(opened)
    opened.note_answer(5)
    assert ask(opened).names == {topic_id.bytes: name for name, topic_id in IDS.items()}


@dataclass
class Broker:
    """A broker's sessions by their ids: the next epoch, and the requested partitions."""

    sessions: dict[int, tuple[int, bool, dict[Partition, WantedPartition]]] = field(default_factory=dict)
    made: int = 0

    def serve(self, exchange: FetchExchange, has_room: bool) -> "str | int":
        """The error's name, or the session's id."""
        session_id, epoch = exchange.session
        asked = {each.partition: each for each in exchange.wanted}
        if epoch == 0:
            self.sessions.pop(session_id, None)
            if not has_room:
                return 0
            self.made += 1
            self.sessions[self.made] = (1, exchange.by_id, asked)
            return self.made
        if session_id not in self.sessions:
            return "FETCH_SESSION_ID_NOT_FOUND"
        expected, by_id, held = self.sessions[session_id]
        if epoch != expected:
            return "INVALID_FETCH_SESSION_EPOCH"
        if by_id != exchange.by_id:
            return "FETCH_SESSION_TOPIC_ID_ERROR"
        held.update(asked)
        for each in exchange.forgotten:
            assert held.pop(each.partition).topic_id == each.topic_id
        self.sessions[session_id] = (expected + 1, by_id, held)
        if not held:
            del self.sessions[session_id]
            return 0
        return session_id


STEPS = st.one_of(
    st.tuples(
        st.just("want"), st.sampled_from("abc"), st.integers(0, 1), st.integers(0, 3), st.sampled_from([None, NOWHERE])
    ),
    st.tuples(st.just("drop"), st.sampled_from("abc"), st.integers(0, 1)),
    st.tuples(st.just("fetch"), st.sampled_from(["answered", "lost on the way", "lost on the way back", "no room"])),
    st.tuples(st.just("evict")),
    st.tuples(st.just("restart")),
)


@settings(max_examples=400)
@given(st.lists(STEPS, max_size=30))
def test_in_every_history_the_broker_reads_just_the_wanted_partitions(steps: list[tuple[Any, ...]]) -> None:
    session, broker = FetchSession(), Broker()
    expected: dict[Partition, WantedPartition] = {}
    for kind, *rest in steps:
        if kind == "want":
            each = wanted(*rest)
            expected[each.partition] = each
            session.want(each)
        elif kind == "drop":
            expected.pop(tuple(rest), None)
            session.drop(tuple(rest))
        elif kind == "evict":
            broker.sessions.clear()
        elif kind == "restart":
            broker = replace(broker, sessions={})
            session.restart()
        elif rest == ["lost on the way"]:
            ask(session)
        else:
            fetch(session, broker, expected, rest[0])


def fetch(session: FetchSession, broker: Broker, expected: dict[Partition, WantedPartition], how: str) -> None:
    """One Fetch, and a second one after an error."""
    for _ in range(2):
        exchange = ask(session)
        answer = broker.serve(exchange, how != "no room")
        if how == "lost on the way back":
            return
        if isinstance(answer, int):
            believed = broker.sessions[answer][2] if answer else {each.partition: each for each in exchange.wanted}
            assert believed == (expected if answer or session.full else {})
            session.note_answer(answer)
            return
        assert answer in LOST
        assert not session.full
    raise AssertionError("a Fetch that names everything was refused as if it belonged to a session")
