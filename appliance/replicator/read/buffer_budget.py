"""The budget of read-ahead: bytes that the buffers of a process may hold together, and one alone of it."""

from dataclasses import dataclass, field

from appliance.replicator.read.allowance import Allowance
from appliance.replicator.read.buffer import Buffer

_BYTES = 16 * 1024 * 1024
_ANSWERS = 5
"""When a partition's answer has come, there is room for another one of that size, that will come meanwhile."""

LEAST = 64 * 1024
"""Least bytes of a partition worth a Fetch."""


@dataclass(slots=True)
class BufferBudget:
    """``bytes`` is what all buffers hold now, ``limit``, by and large, what they may; ``allowance`` bounds the rate."""

    bytes: int = 0
    limit: int = _BYTES
    allowance: Allowance = field(default_factory=Allowance)

    def stretch(self, response_bytes: int) -> None:
        """Make room for answers of this size, which the way to a leader far away takes."""
        self.limit = max(self.limit, _ANSWERS * response_bytes)

    @property
    def left(self) -> int:
        """Bytes that the next answer may bring."""
        return max(self.limit - self.bytes, LEAST)

    def room(self, buffer: Buffer) -> int:
        """Bytes that may be fetched into a buffer; 0 when it is full.

        One buffer may hold half of what is left of the whole (the dynamic threshold of shared-memory switches,
        Choudhury and Hahne 1998): a partition alone gets much, many get their shares, and what one lane cannot get rid
        of leaves room for the others. An empty buffer may always be filled.
        """
        room = (self.limit - self.bytes) // 2 - buffer.bytes
        if room < LEAST:
            return 0 if buffer.chunks else LEAST
        return room
