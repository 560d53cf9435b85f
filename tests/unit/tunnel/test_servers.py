"""The health of source VMs, the order in which a connection tries them, and the times that both take, by a clock."""

import asyncio
import itertools
from collections.abc import Callable
from typing import cast

import pytest

from appliance.errors import ApplianceError, Draining, IdentityRefused, OutOfDescriptors, TimedOut, Unreachable
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.tunnel.client import TunnelClient
from appliance.tunnel.model.servers import (
    FIRST_DELAY,
    HEAD_START,
    HEAD_START_MAX,
    LONGEST_DELAY,
    Condition,
    Server,
    in_order,
)
from appliance.tunnel.stream.tls_channel import TlsChannel
from tests.support.tls import identity
from tests.support.tunnel import HOST, tunnel_settings
from tests.support.virtual_time import run

GONE = Unreachable("connection refused")
AT = 1_800_000_000.0
TARGET = Target(HOST, 9093)


def server(name: str = "a", jitter: Callable[[], float] = lambda: 1.0) -> Server:
    return Server(name, jitter)


def well(name: str = "a") -> Server:
    made = server(name)
    made.succeeded(AT)
    return made


def names(*servers: Server, now: float = 0.0, spread: bool = False) -> list[str]:
    tried = itertools.takewhile(bool, in_order(servers, lambda: now, spread=spread))
    return [each.name for each in tried if each]


def fail(of: Server, error: ApplianceError, now: float, at: float = AT) -> bool:
    """A try in vain that began just now."""
    return of.failed(error, now, now, at)


def test_every_try_is_admitted_while_the_server_answers() -> None:
    a = server()
    assert [a.admits(now) for now in (0, 0, 1)] == [True, True, True]


def test_no_try_is_admitted_during_the_pause_and_one_after_it() -> None:
    a = server()
    fail(a, GONE, 100)
    assert not a.admits(100 + FIRST_DELAY / 2)
    assert a.admits(100 + FIRST_DELAY)
    assert not a.admits(100 + FIRST_DELAY)


def test_the_pauses_double_up_to_the_longest() -> None:
    a = server()
    pauses, now = [], 0.0
    for _ in range(7):
        fail(a, GONE, now)
        pauses.append(next(step / 8 for step in range(1, 100) if a.admits(now + step / 8)))
        now += pauses[-1]
    assert pauses == [0.25, 0.5, 1, 2, 4, LONGEST_DELAY, LONGEST_DELAY]


def test_one_success_ends_it_all() -> None:
    a = server()
    fail(a, GONE, 0)
    fail(a, GONE, 0)
    a.succeeded(AT)
    assert [a.admits(0), a.admits(0)] == [True, True]
    fail(a, GONE, 0)
    assert a.admits(FIRST_DELAY)


def test_attempts_from_before_the_outage_do_not_lengthen_the_pause() -> None:
    a = server()
    for _ in range(50):
        fail(a, GONE, 0)
    assert a.admits(FIRST_DELAY)


def test_a_failed_trial_begins_the_next_pause() -> None:
    a = server()
    fail(a, GONE, 0)
    assert a.admits(1)
    fail(a, GONE, 1)
    assert not a.usable
    assert not a.admits(1 + FIRST_DELAY)
    assert a.admits(1 + 2 * FIRST_DELAY)


def test_jitter_shortens_a_pause_by_half_at_most() -> None:
    a = server(jitter=lambda: 0.0)
    fail(a, GONE, 0)
    assert not a.admits(FIRST_DELAY * 0.49)
    assert a.admits(FIRST_DELAY * 0.5)


def test_a_condition_lasts_since_it_began() -> None:
    a = server()
    assert (a.condition, a.since) == (Condition.UNTRIED, 0.0)
    a.succeeded(AT)
    a.succeeded(AT + 1)
    assert (a.condition, a.since, a.fault) == (Condition.WELL, AT, "")
    fail(a, TimedOut("no answer"), 0, AT + 2)
    fail(a, TimedOut("no answer still"), 1, AT + 3)
    assert (a.condition, a.since, a.fault) == (Condition.SILENT, AT + 2, "no answer still")


@pytest.mark.parametrize(
    ("error", "condition", "ends"),
    [
        (Draining("being stopped"), Condition.DRAINING, [True, True]),
        (TimedOut("no answer"), Condition.SILENT, [True, True]),
        (GONE, Condition.FAILED, [False, True]),
        (IdentityRefused("another secret"), Condition.FAILED, [False, False]),
        (OutOfDescriptors("too many open files"), Condition.FAILED, [False, False]),
    ],
)
def test_what_a_server_carries_ends_when_it_is_gone_and_not_when_it_only_refuses(
    error: Unreachable, condition: Condition, ends: list[bool]
) -> None:
    a = well()
    assert [fail(a, error, now) for now in (0, 1)] == ends
    assert a.condition is condition


def test_a_connection_tries_the_first_that_is_well_then_the_next_and_no_paused_one_before() -> None:
    a, b, c = well("a"), well("b"), well("c")
    assert names(a, b, c) == ["a", "b", "c"]
    fail(a, GONE, 0)
    assert names(a, b, c) == ["b", "c"]
    assert names(a, b, c, now=LONGEST_DELAY) == ["b", "c", "a"]
    a.succeeded(AT)
    assert names(a, b, c) == ["a", "b", "c"]


def test_a_slower_server_is_passed_over_without_being_called_ill() -> None:
    a, b = well("a"), well("b")
    a.given_up(0)
    assert names(a, b) == ["b", "a"]
    assert names(a, b, now=LONGEST_DELAY) == ["a", "b"]
    assert a.usable
    assert a.condition is Condition.WELL


def test_case_1511_a_second_failure_of_the_same_moment_ends_nothing() -> None:
    # Two tries of one short blip were a failure and its confirmation: all that the server carried was reset.
    a = well()
    assert not a.failed(GONE, 0, 1, AT)
    assert not a.failed(GONE, 0.5, 1, AT)
    assert a.failed(GONE, 2, 2, AT)


def test_case_1512_a_distant_server_keeps_a_head_start_of_twice_its_last_try() -> None:
    # From 160 ms of distance on, each connection was dialled through both servers, and the slower one counted as away.
    a = well()
    a.connected(0.4)
    assert a.head_start == 0.8
    a.connected(30)
    assert a.head_start == HEAD_START_MAX
    a.connected(0.01)
    assert a.head_start == HEAD_START


def test_case_1513_a_server_whose_pause_ends_meanwhile_is_tried_after_all() -> None:
    # It was asked once, with the time of the connection's beginning: beside a silent one the connection hung.
    now = 0.0
    a, b = well("a"), well("b")
    fail(b, GONE, 0)
    tries = in_order([a, b], lambda: now, spread=False)
    assert [next(tries), next(tries)] == [a, None]
    now = LONGEST_DELAY
    assert next(tries) is b


def test_connections_are_spread_by_their_numbers() -> None:
    a, b, c = well("a"), well("b"), well("c")
    a.carried, b.carried = {(1, 1), (2, 2)}, {(3, 3)}
    assert names(a, b, c, spread=True) == ["c", "b", "a"]
    fail(c, GONE, 0)
    assert names(a, b, c, spread=True) == ["b", "a"]


def test_servers_with_equally_many_connections_are_chosen_by_chance() -> None:
    a, b = server("a", iter([0.9, 0.1]).__next__), server("b", iter([0.5, 0.5]).__next__)
    assert [names(a, b, spread=True), names(a, b, spread=True)] == [["b", "a"], ["a", "b"]]


async def client_of_two() -> TunnelClient:
    """A client whose first source VM is silent, and whose second one answers in a tenth of a second."""
    others = ((Target("127.0.0.2", 15060), None),)
    client = TunnelClient(tunnel_settings(TARGET, port=15060, others=others), identity(Side.DESTINATION))
    silent, quick = client.vms

    async def says_nothing(*_: object, **__: object) -> TlsChannel:
        await asyncio.Event().wait()
        raise AssertionError

    async def answers(*_: object, **__: object) -> TlsChannel:
        await asyncio.sleep(0.1)
        return cast("TlsChannel", "a channel")

    async def tells(seconds: float) -> bytes:
        assert seconds > 0.1
        await asyncio.sleep(0.1)
        return b"{}"

    silent._reach = says_nothing  # type: ignore[method-assign]
    silent.connect, quick.connect = says_nothing, answers  # type: ignore[method-assign]
    quick.status = tells  # type: ignore[method-assign]
    return client


def test_a_new_connection_beside_a_silent_source_vm_stands_within_two_seconds_and_the_next_one_at_once() -> None:
    async def connect() -> list[float]:
        client, clock = await client_of_two(), asyncio.get_running_loop().time
        seconds = []
        for _ in range(2):
            began = clock()
            vm, _channel = await client._reach(TARGET)
            assert vm is client.vms[1]
            seconds.append(clock() - began)
        return seconds

    first, second = run(connect())
    assert first == pytest.approx(0.6)
    assert second == pytest.approx(0.1)


class End:
    """An end of a carried connection."""

    was_reset = False

    def reset(self) -> None:
        self.was_reset = True


def test_a_silent_source_vm_is_noticed_within_ten_seconds_and_what_it_carries_is_ended() -> None:
    async def watch() -> float:
        client, clock = await client_of_two(), asyncio.get_running_loop().time
        silent, quick = client.vms
        silent.succeeded(AT)
        near, far = End(), End()
        silent.carried.add((far, near))
        quick.carried.add((kept := End(), End()))
        watching = asyncio.create_task(client.watch())
        while not (near.was_reset and far.was_reset):
            await asyncio.sleep(0.1)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert (silent.condition, quick.condition) == (Condition.SILENT, Condition.WELL)
        assert not kept.was_reset
        return clock()

    # A pause before the poll that it does not answer any more.
    assert run(watch()) + 1.0 <= 10.0


def test_case_1514_a_process_that_stood_still_does_not_take_its_own_silence_for_that_of_a_source_vm() -> None:
    # After a stall of the destination VM all that the first source VM carried was reset.
    async def watch() -> bool:
        client = await client_of_two()
        silent, _ = client.vms
        silent.succeeded(AT)
        silent.carried.add((end := End(), End()))

        async def stalled(seconds: float) -> bytes:
            await asyncio.sleep(seconds + 5)
            raise TimedOut("no status")

        silent.status = stalled  # type: ignore[method-assign]
        watching = asyncio.create_task(client.watch())
        await asyncio.sleep(100)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return end.was_reset or silent.condition is not Condition.WELL

    assert not run(watch())


def test_without_another_source_vm_that_is_well_nothing_is_ended() -> None:
    async def watch() -> bool:
        client = await client_of_two()
        silent, other = client.vms
        other.status = silent.status  # type: ignore[method-assign]
        end = End()
        silent.carried.add((end, End()))
        watching = asyncio.create_task(client.watch())
        await asyncio.sleep(100)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert client.counters.server_fault
        return end.was_reset

    assert not run(watch())


def test_a_lone_source_vm_is_not_polled() -> None:
    async def watch() -> bool:
        client = TunnelClient(tunnel_settings(TARGET, port=15060), identity(Side.DESTINATION))
        await client.watch()
        return client.counters.server_fault is None

    assert run(watch())
