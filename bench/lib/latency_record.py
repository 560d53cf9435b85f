"""The records by which latency is measured: each says which one it is and when it was sent."""

import struct
from dataclasses import dataclass

_HEAD = struct.Struct(">qq")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a record says: its number, from 0 on, and the sender's ``time.perf_counter_ns``.

    On Linux that is the machine's monotonic clock, the same one for all its processes.
    """

    number: int
    sent: int

    def value(self, filler: bytes) -> bytes:
        """A record's value of as many bytes as ``filler`` has."""
        return _HEAD.pack(self.number, self.sent) + filler[_HEAD.size :]

    @classmethod
    def of(cls, value: bytes) -> "Stamp":
        """What a value says."""
        return cls(*_HEAD.unpack_from(value))
