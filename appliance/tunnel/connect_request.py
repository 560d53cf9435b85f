"""The client's end of a CONNECT on a channel: the question, and what the server says to it."""

import asyncio

from appliance.errors import TimedOut
from appliance.settings.target import Target
from appliance.tunnel.model.connect import Answer, ConnectClient
from appliance.tunnel.stream.channel import Channel


async def request_target(channel: Channel, target: Target, seconds: float) -> Answer:
    """What the server says to a CONNECT to ``target``; the target's first bytes stay in the channel.

    Raises:
        TimedOut: it says nothing for ``seconds``.
        IdentityRefused: it does not believe us.
        PeerError: what it says is no answer to a CONNECT.
        Unreachable: it hung up.
    """
    connect = ConnectClient(target)
    channel.send(connect.request())
    answer = None
    try:
        async with asyncio.timeout(seconds):
            while answer is None:
                answer = connect.receive(await channel.receive())
    except TimeoutError as error:
        raise TimedOut(f"no answer to CONNECT within {seconds:g} s") from error
    channel.unread(connect.first_bytes)
    return answer
