"""Read and write LZ4 frames of one block, as producers write them for each batch, without the frame's codec.

See KIP-57 and https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md::

    magic u32 | flags u8 | largest block u8 | header checksum u8
    block size u32, its top bit set when the block is not compressed | block | checksum u32, if flagged
    ...
    end mark u32, of zeros

Setting up a codec takes longer than all other work on a few records. Only frames of one independent compressed block,
without the content's size and checksum, are read here; all others, and wrong blocks, are left to the codec. The
checksums of the frame's header and of the block are ignored, because the batch's own has been checked. Written frames
have no checksum of the block, like those of Java's producers; the codec would write one, which the broker and every
reader would have to check.
"""

import struct

from cramjam import Buffer, DecompressionError, lz4

from appliance.kafka.records.batch import ATTRIBUTES_AT, CODEC_MASK, HEADER_SIZE, Batch

BLOCK_BYTES = 64 * 1024
"""The largest block that is read or written here, in uncompressed bytes."""

_LZ4 = 3
_MAGIC = b"\x04\x22\x4d\x18"
_LEAD = struct.Struct("<6sxI")
_BLOCK_AT = HEADER_SIZE + _LEAD.size
_CHECKSUM_BYTES = {
    _MAGIC + bytes((flags, largest)): size
    for flags, size in ((0x60, 0), (0x70, 4))
    for largest in (0x40, 0x50, 0x60, 0x70)
}
"""By magic, flags and largest block."""
_START = _MAGIC + b"\x60\x40\x82"
"""Of a frame of independent blocks of up to 64 KiB, with its checksum."""
_END_MARK = b"\0\0\0\0"
_BLOCK_SIZE = struct.Struct("<I")
_STORED = 1 << 31
CODEC_AT = ATTRIBUTES_AT + 1


def frame(data: memoryview) -> bytes:
    """The frame that holds ``data``."""
    parts: list[Buffer | bytes | memoryview] = [_START]
    for at in range(0, len(data), BLOCK_BYTES):
        plain = data[at : at + BLOCK_BYTES]
        block = lz4.compress_block(plain, store_size=False)
        if len(block) < len(plain):
            parts += _BLOCK_SIZE.pack(len(block)), block
        else:
            parts += _BLOCK_SIZE.pack(len(plain) | _STORED), plain
    return b"".join([*parts, _END_MARK])


def without_codec(batch: Batch, room: memoryview) -> bytes:
    """The batch uncompressed, with unchanged length and CRC; or as it is.

    ``room`` is overwritten, and has BLOCK_BYTES.
    """
    data = bytes(batch.data)
    block = _block(data) if batch.header.attributes & CODEC_MASK == _LZ4 else None
    if block is None:
        return data
    try:
        size = lz4.decompress_block_into(block, room, BLOCK_BYTES)
    except DecompressionError:
        return data
    return uncompressed_batch(data, room[:size])


def uncompressed_batch(data: bytes | memoryview, records: bytes | memoryview) -> bytes:
    """A batch with uncompressed records, and all else as in its ``data``."""
    attributes = bytes((data[CODEC_AT] & ~CODEC_MASK,))
    return b"".join((data[:CODEC_AT], attributes, data[CODEC_AT + 1 : HEADER_SIZE], records))


def _block(data: bytes) -> bytes | None:
    """The frame's compressed block, if there is one and nothing else."""
    if len(data) < _BLOCK_AT:
        return None
    lead, size = _LEAD.unpack_from(data, HEADER_SIZE)
    end = _BLOCK_AT + size
    checksum_bytes = _CHECKSUM_BYTES.get(lead)
    if checksum_bytes is None or data[end + checksum_bytes :] != _END_MARK:
        return None
    block = data[_BLOCK_AT:end]
    # The library retries a block that does not fit as one with its size before it; ours have none.
    return None if int.from_bytes(block[:4], "little") <= BLOCK_BYTES else block
