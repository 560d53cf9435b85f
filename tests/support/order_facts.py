"""Facts of the clusters of an order, and views of them."""

from uuid import UUID

from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.order import Digest, Epoch, HiddenLog, OrderRecord, Origin, Place, Promise
from appliance.logs.model.span import Span
from appliance.order.model.beats import Beat, LaneBeat
from appliance.order.model.cluster_facts import ClusterFacts, compose
from appliance.order.model.view import OrderView

KEY = Partition("orders", 0)
OLD, EPOCH = Epoch(1, "grape"), Epoch(2, "orange")
MEMBERS = ("grape", "lemon", "orange")
ID = UUID(int=7)


def promise(epoch: Epoch = EPOCH, since: int = 5000, lost: tuple[str, ...] = ()) -> Promise:
    return Promise(epoch, MEMBERS, (MEMBERS,), since, lost)


def facts(record: OrderRecord, epoch: Epoch = EPOCH, end: int = 0) -> ClusterFacts:
    beats = [(9_000, Beat("", (LaneBeat(epoch),)))]
    return ClusterFacts([promise(epoch)], {KEY: record}, {"orders": 1}, {KEY: Span(0, end)}, beats=beats)


def hidden(rank: int, **next_offsets: int) -> HiddenLog:
    vector = {Origin(cluster, 0): Place(ID, offset, 0) for cluster, offset in next_offsets.items()}
    return HiddenLog(EPOCH, 0, 0, 0, rank, Digest(), vector)


HOME = facts(OrderRecord(EPOCH, 90, hidden=hidden(100, orange=60, grape=40)), end=60)


def view(**clusters: ClusterFacts | str) -> OrderView:
    return compose(clusters, 10_000, single=False)


def order_view() -> OrderView:
    """A view of an order in which all is everywhere."""
    home = OrderRecord(EPOCH, 100, hidden=hidden(100, orange=60, grape=40, lemon=0))
    others = facts(OrderRecord(EPOCH, 100))
    return view(orange=facts(home, end=60), grape=others, lemon=others)
