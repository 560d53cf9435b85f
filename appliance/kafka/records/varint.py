"""Kafka's varints: seven bits a byte, lowest first.

The signed ones, of record batches, are zigzag (protocol buffers' sint32 and sint64); the unsigned ones are the lengths
and tags of flexible requests and responses (KIP-482).
"""

from appliance.errors import BatchCorrupt

_BYTES_MAX = 10
_MASK = 2**64 - 1

Buffer = bytes | bytearray | memoryview


def read_varint(data: Buffer, at: int) -> tuple[int, int]:
    """The number at ``at``, and the index behind it.

    Raises:
        IndexError: the data end in it.
    """
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, end = read_unsigned(data, at)
    return (value >> 1) ^ -(value & 1), end


def read_unsigned(data: Buffer, at: int) -> tuple[int, int]:
    """The unsigned number at ``at``, and the index behind it."""
    if data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    for position in range(at, at + _BYTES_MAX):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, position + 1
        shift += 7
    raise BatchCorrupt("a varint of more than ten bytes")


def wrap(number: int) -> int:
    """The number in 64 signed bits, as Java's sums and differences of two: times may be more than 2^63 ms apart."""
    return number if -(2**63) <= number < 2**63 else (number + 2**63 & _MASK) - 2**63


def varint(number: int) -> bytes:
    """A signed number's bytes."""
    return encode_unsigned((number << 1) ^ (number >> 63))


def encode_unsigned(value: int) -> bytes:
    """An unsigned number's bytes."""
    if value < 0x80:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_ONE_BYTE = [bytes([value]) for value in range(0x80)]
