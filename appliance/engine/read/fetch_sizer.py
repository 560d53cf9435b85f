"""The size of a Fetch: enough to keep the connection to a leader busy, as only one is in flight."""

from dataclasses import dataclass

from appliance.kafka.client.interface import Transfer

_NEAR_RESPONSE = 8 * 1024 * 1024
_NEAR_PARTITION = 2 * 1024 * 1024
"""Largest answer, and a partition's share, of a nearby leader, in bytes: larger ones cost memory only."""

_NEAR = 0.02
_SURE = 5
"""Number of answers that distinguish a long distance from a broker that was busy or had just started."""

_FAR_RESPONSE = 32 * 1024 * 1024
_TIMES = 8
"""Time of an answer's transfer, as a multiple of the latency."""

_SLOW = 1.0
"""Longest transfer of an answer of the nearby size, in seconds: it delays everything else of this leader."""

_TELLING = 256 * 1024
"""Smallest answer that shows the rate, in bytes."""


@dataclass(slots=True)
class FetchSizer:
    """Sizes the Fetches of one connection by its answers: least latency in seconds, newest rate in bytes a second."""

    _latency: float = 0.0
    _rate: float = 1024 * 1024
    _active: int = 1
    _answers: int = 0

    def answered(self, sent: float, transfer: Transfer, active: int) -> None:
        """A Fetch that was sent at that time was answered with records of ``active`` partitions."""
        latency = transfer.began - sent
        self._latency = min(self._latency, latency) if self._answers else latency
        self._answers += 1
        self._active = max(active, 1)
        seconds = max(transfer.ended - transfer.began, 1e-6)
        if transfer.bytes >= _TELLING:
            self._rate += (transfer.bytes / seconds - self._rate) / 2

    @property
    def far(self) -> bool:
        """True when waiting for the leader takes a large part of the time."""
        return self._answers >= _SURE and self._latency > _NEAR

    @property
    def response_bytes(self) -> int:
        """Bytes to ask for."""
        enough = _TIMES * self._latency * self._rate if self.far else 0.0
        return int(min(_FAR_RESPONSE, max(enough, min(_NEAR_RESPONSE, _SLOW * self._rate))))

    @property
    def partition_bytes(self) -> int:
        """Bytes to ask for of one partition: all, when only one has records."""
        return max(_NEAR_PARTITION, self.response_bytes // self._active) if self.far else _NEAR_PARTITION
