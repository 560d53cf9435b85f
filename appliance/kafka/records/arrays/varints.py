"""Kafka's signed varints, many at once (``records.varint`` reads and writes one)."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from appliance.kafka.records.varint import encode_unsigned

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

BYTES_MAX = 10

_MORE = 0x80
_BITS = 7


class VarintTooLong(ValueError):
    """A varint has more than ten bytes; its number among those that were to be read is ``at``."""

    def __init__(self, at: int) -> None:
        super().__init__("a varint of more than ten bytes")
        self.at = at


def read(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """The numbers at these places, and the places behind them; ``BYTES_MAX`` bytes have to follow each place."""
    byte = data[at]
    raw, behind, shift = (byte & ~np.uint8(_MORE)).astype(np.uint64), at + 1, _BITS
    open_ = np.flatnonzero(byte >= _MORE)
    while len(open_):
        if shift >= BYTES_MAX * _BITS:
            raise VarintTooLong(int(open_[0]))
        byte = data[behind[open_]]
        raw[open_] |= (byte & ~np.uint8(_MORE)).astype(np.uint64) << np.uint64(shift)
        behind[open_] += 1
        open_, shift = open_[byte >= _MORE], shift + _BITS
    return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64), behind


def sizes(numbers: Integers) -> Integers:
    """The number of bytes that each takes."""
    raw = _zigzag(numbers)
    lengths = np.ones(len(raw), np.int64)
    rest = int(raw.max(initial=0)) >> _BITS
    for number in range(1, BYTES_MAX):
        if not rest:
            break
        lengths += raw >= np.uint64(1 << _BITS * number)
        rest >>= _BITS
    return lengths


def written(numbers: Integers) -> pa.BinaryArray:
    """The bytes of each."""
    raw = _zigzag(numbers)
    if raw.max(initial=0) < len(_SHORT):
        return _SHORT.take(pa.array(raw))
    lengths = sizes(numbers)
    places = np.arange(int(lengths.max()))
    text = (raw[:, None] >> (_BITS * places).astype(np.uint64)).astype(np.uint8) & ~np.uint8(_MORE)
    text[places < lengths[:, None] - 1] |= _MORE
    ends = np.zeros(len(raw) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    data = text[places < lengths[:, None]]
    return pa.BinaryArray.from_buffers(pa.binary(), len(raw), [None, pa.py_buffer(ends), pa.py_buffer(data)])


def _zigzag(numbers: Integers) -> npt.NDArray[np.uint64]:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


_SHORT = pa.array([encode_unsigned(number) for number in range(1 << 2 * _BITS)], pa.binary())
"""The bytes of all that take two at most."""
