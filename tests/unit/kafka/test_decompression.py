"""A few bytes that stand for gigabytes take no more memory than the limit, in every codec."""

import contextlib
import subprocess
import sys
import zlib

import pytest
from aiokafka import codec
from cramjam import DecompressionError, snappy
from hypothesis import given
from hypothesis import strategies as st

from appliance.kafka.records.decompression import LIMIT, decompress

COMPRESS = {0: bytes, 1: codec.gzip_encode, 2: codec.snappy_encode, 3: codec.lz4_encode, 4: codec.zstd_encode}
CODECS = pytest.mark.parametrize("codec_bits", COMPRESS, ids=["none", "gzip", "snappy", "lz4", "zstd"])
NAMED = (ValueError, DecompressionError, zlib.error, EOFError, OSError)

_BOUNDED = """
import resource, sys
from aiokafka import codec
from appliance.kafka.records.decompression import LIMIT, decompress
encode = {"1": codec.gzip_encode, "2": codec.snappy_encode, "3": codec.lz4_encode, "4": codec.zstd_encode}[sys.argv[1]]
bomb = memoryview(bytes(encode(bytes(8 * LIMIT))))
with open("/proc/self/statm") as memory:
    held = int(memory.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 4 * LIMIT, resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    decompress(int(sys.argv[1]), bomb)
except ValueError as error:
    print(error)
"""


@CODECS
@given(data=st.binary(max_size=200), times=st.sampled_from([1, 7, 3000]))
def test_what_was_compressed_comes_back(codec_bits: int, data: bytes, times: int) -> None:
    assert decompress(codec_bits, memoryview(bytes(COMPRESS[codec_bits](data * times)))) == data * times


@CODECS
@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_000])
def test_the_limit_is_exact(codec_bits: int, size: int) -> None:
    if codec_bits == 0:
        return
    data = memoryview(bytes(COMPRESS[codec_bits](bytes(size))))
    assert decompress(codec_bits, data, size) == bytes(size)
    if size:
        with pytest.raises(ValueError, match=f"more than {size - 1} bytes"):
            decompress(codec_bits, data, size - 1)


@pytest.mark.parametrize("codec_bits", [1, 2, 3, 4])
def test_case_950_a_bomb_takes_no_more_memory_than_the_limit(codec_bits: int) -> None:
    # 31 KB of zeros in zstd took 2 GB.
    command = [sys.executable, "-c", _BOUNDED, str(codec_bits)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.stdout == f"it takes more than {LIMIT} bytes uncompressed\n", told.stderr


def test_snappy_without_xerials_stream_is_read_too() -> None:
    assert decompress(2, memoryview(bytes(snappy.compress_raw(b"librdkafka" * 9)))) == b"librdkafka" * 9


@CODECS
@given(data=st.binary(max_size=300), cut=st.integers(0, 40), at=st.integers(0, 300), bit=st.integers(0, 7))
def test_damaged_bytes_raise_what_is_named_or_give_other_bytes(
    codec_bits: int, data: bytes, cut: int, at: int, bit: int
) -> None:
    whole = bytearray(bytes(COMPRESS[codec_bits](data)))
    if whole:
        whole[at % len(whole)] ^= 1 << bit
    with contextlib.suppress(*NAMED):
        decompress(codec_bits, memoryview(whole)[: max(0, len(whole) - cut)])


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(ValueError, match="unknown codec, 5"):
        decompress(5, memoryview(b""))
