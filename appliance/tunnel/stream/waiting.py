"""What waits in this process to be sent, of all its connections together, and how much one more read may add.

A connection whose receiver does not take what comes (it is *jammed*) keeps one read here for each direction. Reads are
large, for speed, and there may be thousands of jammed connections; so the size of a read follows from what is left of
one budget. It is the dynamic threshold of switches that share one memory (Choudhury and Hahne, IEEE/ACM Transactions on
Networking 6(2), 1998): who comes late to a full memory gets little, and nobody needs to know how many share it.
"""

BUDGET = 64 * 2**20
"""Bytes that may wait before reads are as small as they get."""

READ_SIZE_MAX = 512 * 1024
"""Bytes that one read takes at most: a quarter of that costs a sixth more processor time, more buys little and makes
the other connections wait."""

READ_SIZE_MIN = 16 * 1024
"""Bytes that one read takes at least: one record of TLS."""


class Pool:
    """``waiting`` are the bytes that wait now."""

    def __init__(self) -> None:
        self.waiting = 0

    @property
    def read_size(self) -> int:
        """How many bytes the next read may take."""
        return min(READ_SIZE_MAX, max(READ_SIZE_MIN, (BUDGET - self.waiting) // 2))


POOL = Pool()
"""That of this process, which has one event loop."""
