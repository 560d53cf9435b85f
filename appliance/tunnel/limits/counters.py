"""The counters of one end of the tunnel since its start; ``gateway`` makes metrics of them."""

import bisect
import contextlib
import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from appliance.clock import monotonic
from appliance.errors import ApplianceError, IdentityRefused, NameUnresolved, PeerError, TargetRefused
from appliance.tunnel.model.servers import Server

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of a histogram's buckets, in seconds; one more bucket takes the rest."""


class Refusal(enum.StrEnum):
    """The reason why a connection was not carried."""

    CROWD = "crowd"
    FULL = "full"
    AWAY = "away"
    IDENTITY = "identity"
    PROTOCOL = "protocol"
    PEER_UNREACHABLE = "peer_unreachable"
    UNRESOLVED = "unresolved"
    TARGET = "target"
    TARGET_UNREACHABLE = "target_unreachable"


_CAUSES = (
    (IdentityRefused, Refusal.IDENTITY),
    (TargetRefused, Refusal.TARGET),
    (NameUnresolved, Refusal.UNRESOLVED),
    (PeerError, Refusal.PROTOCOL),
)


@dataclass(slots=True)
class Meter:
    """Bytes that went one way."""

    bytes: int = 0


@dataclass(slots=True)
class Histogram:
    """Durations: the number within each of ``BOUNDS`` and beyond them, and their sum in ``seconds``."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one more duration."""
        self.counts[bisect.bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Observe the duration of the block, unless it fails."""
        began = monotonic()
        yield
        self.observe(monotonic() - began)

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        """The mean in seconds; None before the first."""
        return self.seconds / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """The duration that ``share`` of all stay within, interpolated in its bucket, as Prometheus does.

        None before the first, and beyond the last of ``BOUNDS``, where the buckets cannot tell.
        """
        rank, below, lower = share * self.count, 0, 0.0
        for bound, count in zip(BOUNDS, self.counts, strict=False):
            if count and below + count >= rank:
                return lower + (bound - lower) * (rank - below) / count
            below, lower = below + count, bound
        return None


@dataclass(slots=True)
class Counters:
    """The numbers of one end.

    ``accepted`` connections are ``open`` until they are over; those of them that are ``carrying``
    have their target, the others wait for it. ``refused`` counts by cause; only the ``CROWD`` of those without a
    proved identity is never accepted. ``ended`` counts the relays by the name of their ``End``. ``handshakes``
    and ``dials`` time what succeeded. ``server_fault`` is why the client did not reach the server when it tried last:
    empty when it did, None before the first attempt. ``servers`` are the client's source VMs.
    """

    accepted: int = 0
    open: int = 0
    carrying: int = 0
    refused: Counter[Refusal] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    to_target: Meter = field(default_factory=Meter)
    from_target: Meter = field(default_factory=Meter)
    handshakes: Histogram = field(default_factory=Histogram)
    dials: Histogram = field(default_factory=Histogram)
    server_fault: str | None = None
    servers: Sequence[Server] = ()

    @contextlib.contextmanager
    def set_aside(self) -> Iterator[None]:
        """Leave one connection, which is no broker's, out of ``open`` while the block runs."""
        self.open -= 1
        try:
            yield
        finally:
            self.open += 1

    def peer_failed(self, error: ApplianceError) -> None:
        """Count a connection that was not carried because of the other end of the tunnel."""
        self.refused[_cause(error, Refusal.PEER_UNREACHABLE)] += 1

    def target_failed(self, error: ApplianceError) -> None:
        """Count a connection that was not carried because of its target."""
        self.refused[_cause(error, Refusal.TARGET_UNREACHABLE)] += 1


def _cause(error: ApplianceError, otherwise: Refusal) -> Refusal:
    return next((cause for kind, cause in _CAUSES if isinstance(error, kind)), otherwise)
