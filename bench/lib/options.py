"""What the options of several benchmarks have in common."""

import argparse


def few(text: str) -> int:
    """A whole number from 0 to 100.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) > 100:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 100, got {text}")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text}")
    return int(text)
