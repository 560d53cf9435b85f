import asyncio
import ipaddress
import logging

import pytest

from appliance.dns.binding import AddressBook
from appliance.errors import CredentialsRefused, NameUnresolved, SettingsError, Unreachable
from appliance.gateway import watcher as watcher_module
from appliance.gateway.endpoints import Endpoints
from appliance.gateway.model.brokers import BrokerState, Fault
from appliance.gateway.watcher import BrokerWatcher, resolver
from tests.support.brokers import ALLOWED, B0, B1, OTHER_NAME, OTHER_PORT, ScriptedCluster
from tests.unit.gateway.test_endpoints import Client


@pytest.fixture(autouse=True)
def everything_is_logged(caplog):
    caplog.set_level(logging.INFO)


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def endpoints(client):
    return Endpoints(ALLOWED, AddressBook(ipaddress.IPv4Network("127.64.0.0/10")), client)


def watching(endpoints, *told):
    return BrokerWatcher(ScriptedCluster(*told), ALLOWED, endpoints)


def warnings(caplog):
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_broker_is_open_as_soon_as_the_cluster_lists_it_without_being_asked_for(endpoints, client):
    watcher = watching(endpoints, {0: B0}, {0: B0, 1: B1})
    assert await watcher.poll()
    assert [target for target, *_ in client.opened] == [str(B0)]
    assert await watcher.poll()
    assert [(target, port) for target, _, port in client.opened] == [(str(B0), B0.port), (str(B1), B1.port)]
    assert watcher.view.state == {B0: BrokerState.OPEN, B1: BrokerState.OPEN}


async def test_a_broker_outside_of_the_list_is_logged_once_and_stays_shown(endpoints, client, caplog):
    watcher = watching(endpoints, {0: B0, 1: OTHER_PORT})
    for _ in range(3):
        await watcher.poll()
    (line,) = warnings(caplog)
    assert "SOURCE_BROKER_SERVERS, SOURCE_BROKER_PATTERN" in line.message
    assert line.fields == {
        "broker": "b3.orange.example:9999",
        "reason": "its name is allowed on other ports only: 9092-9098",
    }
    assert watcher.view.in_state(BrokerState.REFUSED) == (OTHER_PORT,)
    assert [target for target, *_ in client.opened] == [str(B0)]


async def test_a_refused_broker_that_moves_to_another_refused_target_is_logged_again(endpoints, caplog):
    watcher = watching(endpoints, {1: OTHER_PORT}, {1: OTHER_NAME})
    await watcher.poll()
    await watcher.poll()
    assert [line.fields["broker"] for line in warnings(caplog)] == [str(OTHER_PORT), str(OTHER_NAME)]


async def test_a_silent_cluster_is_logged_once_and_the_known_brokers_stay(endpoints, caplog):
    away, wrong = Unreachable("nobody answers"), CredentialsRefused("check SOURCE_API_KEY")
    watcher = watching(endpoints, {0: B0}, away, away, wrong, {0: B0})
    polls = [await watcher.poll() for _ in range(4)]
    assert polls == [True, False, False, False]
    assert [line.fields for line in warnings(caplog)] == [
        {"fault": "unreachable", "cause": "nobody answers"},
        {"fault": "credentials", "cause": "check SOURCE_API_KEY"},
    ]
    assert watcher.view.state == {B0: BrokerState.OPEN}
    assert (watcher.view.fault, watcher.view.cause) == (Fault.CREDENTIALS, "check SOURCE_API_KEY")
    assert watcher.failures == {Fault.UNREACHABLE: 2, Fault.CREDENTIALS: 1}
    assert await watcher.poll()
    assert watcher.view.fault is None
    assert caplog.messages[-1] == "the source cluster tells its brokers again"


async def test_an_endpoint_that_cannot_be_had_is_logged_once_and_tried_again(endpoints, client, caplog):
    watcher = watching(endpoints, {0: B0})
    client.fault = SettingsError(["TUNNEL_ENDPOINT_NETWORK: cannot listen"])
    await watcher.poll()
    await watcher.poll()
    assert len(warnings(caplog)) == 1
    assert watcher.view.state == {B0: BrokerState.CLOSED}
    client.fault = None
    await watcher.poll()
    assert watcher.view.state == {B0: BrokerState.OPEN}


async def test_a_broker_that_left_keeps_its_endpoint_and_is_shown_no_more(endpoints, client, caplog):
    watcher = watching(endpoints, {0: B0, 1: B1}, {0: B0})
    await watcher.poll()
    await watcher.poll()
    assert len(client.opened) == endpoints.count == 2
    assert watcher.view.state == {B0: BrokerState.OPEN}
    assert caplog.records[-1].fields == {"broker": str(B1)}


async def test_the_pauses_grow_while_the_cluster_does_not_tell(endpoints, monkeypatch):
    pauses, enough = [], asyncio.Event()

    async def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 8:
            enough.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(watcher_module.asyncio, "sleep", pause)
    away = Unreachable("nobody answers")
    task = asyncio.create_task(watching(endpoints, {}, away, away, away, away, away, {}, away).run())
    await enough.wait()
    task.cancel()
    assert pauses == [3, 1, 2, 4, 8, 12, 3, 1]


async def test_the_watcher_finds_brokers_as_the_shim_answers_for_them(endpoints, client):
    find = resolver(endpoints)
    (address,) = await find(B0.host)
    assert client.opened[0][1] == address
    with pytest.raises(NameUnresolved, match="SOURCE_BROKER_PATTERN"):
        await find("b0.grape.example")
