"""Kafka's signed varints: zigzag, seven bits a byte, lowest first (protocol buffers' sint32 and sint64)."""

from appliance.errors import BatchCorrupt

_BYTES_MAX = 10

Buffer = bytes | bytearray | memoryview


def read_varint(data: Buffer, at: int) -> tuple[int, int]:
    """The number at ``at``, and where what follows it begins.

    Raises:
        IndexError: the data end in it.
        BatchCorrupt: it is longer than any 64-bit number.
    """
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, shift = byte & 0x7F, 7
    for position in range(at + 1, at + _BYTES_MAX):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise BatchCorrupt("a varint of more than ten bytes")


def varint(number: int) -> bytes:
    """The number's bytes."""
    value = (number << 1) ^ (number >> 63)
    if value < 0x80:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_ONE_BYTE = [bytes([value]) for value in range(0x80)]
