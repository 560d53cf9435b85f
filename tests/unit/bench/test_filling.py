"""The records of a load."""

import cramjam

from bench.filling import Load


def test_values_have_their_size_and_lz4_halves_them() -> None:
    values = Load(records=1).values()
    assert {len(value) for value in values} == {500}
    window = b"".join(values[:256])
    assert 0.4 < len(cramjam.lz4.compress(window)) / len(window) < 0.6


def test_values_are_the_same_at_each_run() -> None:
    assert Load(records=1).values() == Load(records=1).values()
