"""The gate of a home: the rank up to which it may show what it has taken."""

from dataclasses import dataclass, replace

from appliance.link.model.order import NO_EPOCH, HiddenLog, OrderRecord

ALONE_SECONDS = 10.0
"""Time without an acknowledgement after which a home may go on alone, in seconds."""

NEAR = 50_000
"""Records that another cluster may lack when a home that was alone waits for it."""


@dataclass(slots=True)
class Gate:
    """The gate of one partition; times are seconds of any monotonic clock.

    With ``may_go_alone`` the home shows what nobody else has once nothing was acknowledged for long.
    """

    may_go_alone: bool = False
    _acknowledged: int = -1
    _since: float = 0.0
    """The rank that others have acknowledged, and since when, or since when they had all."""

    def restart(self) -> None:
        """Forget what was acknowledged."""
        self._acknowledged = -1

    def bound(self, record: OrderRecord, hidden: HiddenLog, rank: int, now: float) -> tuple[OrderRecord, int]:
        """The rank up to which the home may show, if others have acknowledged ``rank``; and its record then.

        A home that is alone closes its gate when another one is near, and is alone no longer once that has all. In an
        epoch that it opens meanwhile its gate is closed: others may have promised that.
        """
        if rank != self._acknowledged or hidden.rank <= rank:
            self._acknowledged, self._since = rank, now
        is_stalled = now - self._since >= ALONE_SECONDS
        if rank >= max(record.rank, hidden.opened, 1):
            record = replace(record, alone=NO_EPOCH)
        if record.alone != record.accepted:
            goes_alone = self.may_go_alone and is_stalled and hidden.rank > record.rank
            return (replace(record, alone=record.accepted), hidden.rank) if goes_alone else (record, rank)
        is_near = rank > 0 and not is_stalled and record.rank - rank <= NEAR
        return record, rank if is_near else hidden.rank
