"""The source cluster's brokers in live metadata, compared with the allow-list; pure.

    (allowed, brokers known, brokers listed) -> Change: endpoints to be open, brokers refused, what is new

The endpoint of a broker that left stays open. Brokers leave the metadata at each restart, and a client that connects
meanwhile is refused through the tunnel. A closed endpoint would refuse it too, and would also refuse clients when the
broker has just returned. The cost is one listening socket for each name and port since the start.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.errors import (
    ApplianceError,
    CredentialsRefused,
    IdentityRefused,
    PeerError,
    SettingsError,
    TokenUnavailable,
    Unreachable,
)
from appliance.settings.target import AllowedTargets, Target

BROKERS_MAX = 1000
"""Most brokers taken from metadata; those with the lowest node ids."""

Brokers = Mapping[int, Target]
"""The brokers by node id."""


class BrokerState(enum.StrEnum):
    """The state of a broker's endpoint."""

    OPEN = "open"
    CLOSED = "closed"
    REFUSED = "refused"


class Fault(enum.StrEnum):
    """The reason why the cluster did not list its brokers."""

    UNREACHABLE = "unreachable"
    CREDENTIALS = "credentials"
    IDENTITY = "identity"
    PROTOCOL = "protocol"
    SETTINGS = "settings"
    OTHER = "other"

    @classmethod
    def of(cls, error: ApplianceError) -> "Fault":
        """The fault of an error."""
        return next((fault for kind, fault in _FAULTS if isinstance(error, kind)), cls.OTHER)


_FAULTS = (
    (Unreachable, Fault.UNREACHABLE),
    (CredentialsRefused, Fault.CREDENTIALS),
    (TokenUnavailable, Fault.CREDENTIALS),
    (IdentityRefused, Fault.IDENTITY),
    (PeerError, Fault.PROTOCOL),
    (SettingsError, Fault.SETTINGS),
)


@dataclass(frozen=True, slots=True)
class Change:
    """The consequences of a new list of brokers: those to ``open``, those ``refused``, and its changes."""

    brokers: Brokers
    open: tuple[Target, ...]
    refused: tuple[Target, ...]
    joined: tuple[Target, ...]
    moved: tuple[tuple[Target, Target], ...]
    left: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class BrokerView:
    """The known brokers of the source.

    ``at`` is the time of the last list, in seconds since 1970, None before the first; ``fault`` and ``cause`` are why
    there is none now, the one None and the other empty when there is.
    """

    at: float | None = None
    brokers: Brokers = field(default_factory=dict)
    state: Mapping[Target, BrokerState] = field(default_factory=dict)
    fault: Fault | None = None
    cause: str = ""

    def in_state(self, state: BrokerState) -> tuple[Target, ...]:
        """The brokers in this state, in order."""
        return tuple(sorted(target for target, own in self.state.items() if own is state))


def compare(allowed: AllowedTargets, known: Brokers, listed: Brokers) -> Change:
    """The change from the known brokers to those that the cluster lists now."""
    now = {node: listed[node] for node in sorted(listed)[:BROKERS_MAX]}
    targets = dict.fromkeys(now.values())
    return Change(
        brokers=now,
        open=tuple(target for target in targets if allowed.allows(target)),
        refused=tuple(target for target in targets if not allowed.allows(target)),
        joined=tuple(target for node, target in now.items() if node not in known),
        moved=tuple((known[node], target) for node, target in now.items() if known.get(node, target) != target),
        left=tuple(target for node, target in known.items() if node not in now),
    )
