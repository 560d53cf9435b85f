"""The size of a lane's next transaction: half as much after one that outlasted its timeout, more after quick ones."""

from dataclasses import dataclass, field

from appliance.errors import TransactionTimedOut

LEAST = 64 * 1024
"""Smallest limit, in bytes: a batch that is larger is sent by itself."""

_OVER = 0.9
"""Share of the timeout after which a failed transaction counts as too large: the coordinator's clock began later."""

_QUICK = 1 / 4
"""Share of the timeout within which a transaction has to commit before its size may double."""


@dataclass(slots=True)
class TransactionSize:
    """``bytes`` is the limit for the next transaction, ``most`` the largest limit; ``timeout`` is in seconds."""

    most: int
    timeout: float
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.bytes = self.most

    def committed(self, size: int, seconds: float) -> None:
        """Take in a transaction's duration; that of a small one says nothing about the limit's size."""
        if seconds < _QUICK * self.timeout and size >= self.bytes // 2:
            self.bytes = min(2 * self.bytes, self.most)

    def failed(self, size: int, seconds: float) -> TransactionTimedOut | None:
        """Take in a failed transaction; the problem, if its timeout was over."""
        if seconds < _OVER * self.timeout:
            return None
        self.bytes = min(self.most, max(LEAST, min(self.bytes, size) // 2))
        return TransactionTimedOut(
            f"a transaction of {size} bytes took {seconds:.1f} s, longer than TRANSACTION_TIMEOUT_SECONDS="
            f"{self.timeout:g}, and was aborted: the next one holds at most {self.bytes} bytes"
        )
