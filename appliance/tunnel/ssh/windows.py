"""How many bytes each channel of the SSH connection may have under way (RFC 4254, section 5.2); pure.

A channel's window bounds its throughput, a window for each round trip, and what waits in this process for a client that
does not read. So the first channels get much, and later ones less, since they share one line anyway::

    window = (TOTAL - granted) / SHARE, LEAST at least and MOST at most
"""

TOTAL = 128 * 2**20
"""Bytes that all windows come to, but for the LEAST of each further channel."""

SHARE = 8
"""Which part of what is left one channel gets."""

MOST = 16 * 2**20
"""Some 80 MB/s at a round trip of 100 ms: asyncssh opens a window again when half of it is used up."""

LEAST = 64 * 2**10
"""Two packets of SSH (RFC 4253, section 6.1), or four records of TLS."""


class Windows:
    """Grants windows to channels, and takes them back."""

    def __init__(self) -> None:
        self.granted = 0

    def grant(self) -> int:
        """The window of one more channel, in bytes."""
        window = min(MOST, max(LEAST, (TOTAL - self.granted) // SHARE))
        self.granted += window
        return window

    def release(self, window: int) -> None:
        """That channel is closed."""
        self.granted -= window
