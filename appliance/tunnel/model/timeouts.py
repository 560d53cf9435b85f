"""The longest time of each step of a connection."""

from dataclasses import dataclass

DRAIN_SECONDS = 5.0
"""Longest time of connections after the stop, in seconds; Docker kills after ten."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds, of all steps from the dial to the end of a relay.

    ``hello`` is the server's for a first flight, which comes with the connection; ``slot`` that for one of
    TUNNEL_CONNECTIONS_MAX to come free; ``answer`` the client's for all that the server does between CONNECT and its
    answer; ``linger`` that of a silent relay of which one direction has ended; ``last_word`` the time that a refused
    peer has to read the reason; ``status`` the client's for a status document, from its dial on.
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
    status: float = 10.0
