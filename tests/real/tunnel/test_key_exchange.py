"""TUNNEL_KEY_EXCHANGE: both ends agree on the set groups alone; other groups meet silence, and both logs name it."""

import asyncio
import logging

import pytest

from appliance.settings.target import Target
from appliance.settings.values import KeyExchange, Side
from appliance.tls.engine import TlsLayer
from appliance.tls.identity import Identity
from tests.support.tls import identity, link_to, running_client, running_server
from tests.support.tunnel import HOST, carries, echo, logged
from tests.unit.tls.test_first_flight import P256, groups_of


def end(side: Side, exchange: KeyExchange) -> Identity:
    return identity(side, exchange=exchange)


@pytest.mark.parametrize("exchange", KeyExchange)
async def test_a_connection_is_carried_by_either_key_exchange(exchange: KeyExchange) -> None:
    at_client = {"end": end(Side.DESTINATION, exchange)}
    async with link_to(echo, end=end(Side.SOURCE, exchange), at_client=at_client) as link:
        reader, writer = await link.connect()
        assert await carries(reader, writer, b"carried")
        writer.close()


def test_an_end_set_to_p_256_offers_p_256_alone() -> None:
    client = TlsLayer(end(Side.DESTINATION, KeyExchange.P256).tls.context)
    client.start()
    assert groups_of(client.outgoing()) == [P256]


@pytest.mark.parametrize("at_server", KeyExchange)
async def test_another_key_exchange_meets_silence_and_both_logs_name_the_variable(
    caplog: pytest.LogCaptureFixture, at_server: KeyExchange
) -> None:
    caplog.set_level(logging.INFO)
    target = Target(HOST, 9093)
    [at_client] = [each for each in KeyExchange if each is not at_server]
    async with (
        running_server(target, end=end(Side.SOURCE, at_server)) as server,
        running_client(target, server.port, end=end(Side.DESTINATION, at_client)) as (_, endpoint),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        assert server.counters.accepted == 0
    lines = logged(caplog.records).splitlines()
    for said in ("hung up without a word", f"other keys than those of {at_server}"):
        assert [line for line in lines if said in line and "TUNNEL_KEY_EXCHANGE" in line]
