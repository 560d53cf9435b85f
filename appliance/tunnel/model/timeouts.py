"""How long each step of a connection may take."""

from dataclasses import dataclass

DRAIN_SECONDS = 5.0
"""How long connections may go on after the stop: less than the ten seconds after which Docker kills."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. ``slot`` is how long a connection may wait until one of TUNNEL_CONNECTIONS_MAX is free at its end.

    ``hello`` is how long the server waits for a first flight, which comes with the connection.
    ``answer`` is the client's patience with all that the server does between CONNECT and its answer.

    ``linger`` is how long a relay of which one direction has ended may be silent in the other, ``last_word`` how long a
    refused peer has to read why.
    """

    dial: float = 5.0
    hello: float = 5.0
    handshake: float = 10.0
    head: float = 10.0
    resolve: float = 11.0
    slot: float = 10.0
    answer: float = 30.0
    linger: float = 60.0
    last_word: float = 2.0
