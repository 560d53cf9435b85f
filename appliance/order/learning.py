"""What a cluster learns from the T-globals of others: what is visible in any of them is in the order for ever."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from appliance.clock import now_ms
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.checkpoint import Gap
from appliance.link.model.order import Digest, Epoch, OrderRecord, Promise
from appliance.link.model.position import Position
from appliance.order.model.changes import Change, Shown, show
from appliance.order.model.rebuilding import Beginning
from appliance.order.peers import Peer


@dataclass(frozen=True, slots=True)
class Learned:
    """Records of another cluster's T-global, from rank ``start`` on; that cluster had promised ``epoch`` then.

    ``digest`` is the one after them, if they are all that it has shown.
    """

    start: int
    epoch: Epoch
    shown: tuple[Shown, ...]
    digest: Digest | None


@dataclass(eq=False)
class Learning:
    """The catching up of one partition of T; ``learned`` is what it has brought last."""

    key: Partition
    peers: Mapping[str, Peer]
    learned: Learned | None = None
    avoided: set[str] = field(default_factory=set)
    """The clusters from which a catch-up has brought nothing."""
    begins: dict[str, Beginning] = field(default_factory=dict)
    """The first records that clusters have whose T-globals have deleted what is lacking here."""
    skips_at: int = -1
    """The rank where, by the operator's word, it goes on at the first records that another cluster has; until it has
    all that comes after them."""

    def ahead(self, promise: Promise, record: OrderRecord) -> list[Peer]:
        """The clusters that can be read now and show more, of which all is in the order for ever."""
        return [
            peer
            for peer in self.peers.values()
            if peer.failure is None and peer.record(self.key).rank > record.rank and peer.checkpoint.promise is not None
            if peer.checkpoint.promise.epoch <= promise.epoch and peer.record(self.key).is_final(promise.epoch)
        ]

    def source(self, promise: Promise, record: OrderRecord) -> Peer | None:
        """The cluster to learn from next."""
        ahead = self.ahead(promise, record)
        if self.avoided.issuperset(peer.id for peer in ahead):
            self.avoided.clear()
        others = [peer for peer in ahead if peer.id not in self.avoided]
        return max(others, key=lambda peer: peer.record(self.key).rank, default=None)

    def note(self, peer: str, brought: Learned | Beginning | None) -> None:
        """Note what a catch-up has brought from a cluster."""
        match brought:
            case Learned():
                self.learned = brought
                self.avoided.clear()
            case Beginning():
                self.begins[peer] = brought

    def change(self, promise: Promise, record: OrderRecord) -> Change | None:
        """Show what a catch-up has brought."""
        learned, self.learned = self.learned, None
        if learned is None or learned.start != record.rank or learned.epoch > promise.epoch:
            return None
        for each in learned.shown:
            record = show(record, each)
        if learned.digest is not None:
            record = replace(record, digest=learned.digest)
        return Change(self.key, record, learned.shown)

    def skips(self, record: OrderRecord) -> bool:
        """True while the operator's word holds: not for records that it lacks later on."""
        return self.skips_at == record.rank or (self.skips_at >= 0 and not record.digest.is_known)

    def first_left(self, promise: Promise, record: OrderRecord) -> Beginning | None:
        """The first records that other clusters have, if nobody has what comes next here."""
        self.begins = {name: each for name, each in self.begins.items() if each.rank > record.rank}
        if not self.begins or any(each.failure or not each.log.is_known for each in self.peers.values()):
            return None
        ahead = {peer.id for peer in self.ahead(promise, record)}
        if not ahead or not self.begins.keys() >= ahead:
            return None
        return min(self.begins.values(), key=lambda each: each.rank)

    def go_on_at(self, first: Beginning, record: OrderRecord, positions: Mapping[Partition, Position]) -> Change:
        """Go on after records that nobody has any more, which the gap ledger tells."""
        gaps = []
        for origin, place in first.places.items():
            source = origin.of(self.key.topic)
            next_offset = positions[source].next_offset if source in positions else 0
            if place.next_offset > next_offset:
                ends = next_offset, place.next_offset
                gaps.append(Gap(source, place.topic_id, *ends, "deleted in all T-globals", now_ms()))
        record = replace(record, rank=first.rank, first_rank=first.rank, digest=first.digest)
        return Change(self.key, record, gaps=gaps, begins=first.places)
