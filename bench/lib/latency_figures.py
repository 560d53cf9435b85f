"""What the programs of the latency share: their options, their records, and the figures from the times of these."""

import argparse
import math
import struct
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def latency_parser(description: str | None) -> argparse.ArgumentParser:
    """The options that both programs have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    return parser


@dataclass(frozen=True, slots=True)
class Sample:
    """One record: the time at which it was sent, in seconds of the machine's clock, and the milliseconds until its
    receipt."""

    sent: float
    taken: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds."""

    p50: float
    p99: float
    highest: float

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Figures":
        """The figures of the samples, at least one."""
        taken = [sample.taken for sample in samples]
        return cls(percentile(taken, 0.50), percentile(taken, 0.99), max(taken))


def percentile(values: Iterable[float], share: float) -> float:
    """The value that a ``share`` of the samples does not exceed (the nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def samples_of(times: bytes, warming_seconds: float) -> list[Sample]:
    """A receiver's samples, without the records that were sent in the first seconds."""
    noted = array("q", times)
    sent, received = noted[::2], noted[1::2]
    begun = sent[0] / 1e9 + warming_seconds
    return [Sample(s / 1e9, (r - s) / 1e6) for s, r in zip(sent, received, strict=True) if s / 1e9 >= begun]


_STAMP = struct.Struct(">qq")
_BEFORE = b'{"id":"'
_END = len(_BEFORE) + 2 * _STAMP.size


@dataclass(frozen=True, slots=True)
class Stamp:
    """The contents of a record: its number, starting with 0, and the sender's ``time.perf_counter_ns``.

    On Linux that is the machine's monotonic clock, which all its processes share. A stamp takes the place of an event's
    id, so that the value stays JSON.
    """

    number: int
    sent: int

    def value(self, filler: bytes) -> bytes:
        """A record's value, of the length of ``filler``, which is an event."""
        return _BEFORE + _STAMP.pack(self.number, self.sent).hex().encode() + filler[_END:]

    @classmethod
    def of(cls, value: bytes) -> "Stamp":
        """The stamp in a value."""
        return cls(*_STAMP.unpack(bytes.fromhex(value[len(_BEFORE) : _END].decode())))
