"""Records of the order that no T-global has any more, which a cluster that comes late has never shown."""

import pytest

from appliance.errors import ApplianceError
from appliance.kafka.protocol.metadata import Partition
from appliance.link.model.order import OrderRecord
from tests.simulation.order_operator import Operator
from tests.simulation.order_scenario import Calm, Clusters

KEY = Partition("orders", 0)


def record(order: Calm, name: str) -> OrderRecord:
    runners = order.world.beside[name].process.runners
    return runners[0].lane.record(KEY) if runners else OrderRecord()


def delete_most(order: Calm) -> None:
    """Orange and grape show more, and retention deletes all but their newest records; the hidden log was trimmed."""
    for _ in range(2):
        order.commit(15, "orange", "grape")
        order.go_on(1)
        order.until(
            lambda: order.shown("orange") == order.shown("grape") == record(order, "orange").length("orange"), 20
        )
    order.expire("orange", "grape")


def late(order: Calm, *, earlier: int) -> None:
    """Lemon has shown so many batches, and comes back when nobody has those after them any more."""
    order.start()
    order.commit(earlier)
    order.settle()
    order.world.kill("lemon")
    delete_most(order)
    order.world.start("lemon")
    order.until(lambda: "appliance order resume --gap" in record(order, "lemon").stopped, 30)
    order.go_on(1)  # until others can read that


@pytest.mark.parametrize("earlier", [0, 10])
def test_a_cluster_that_lacks_records_that_nobody_has_any_more_stops_with_the_ranks_and_goes_on_by_the_operators_word(
    earlier: int, calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    order = calm(3)
    late(order, earlier=earlier)
    shown = record(order, "lemon").rank
    order.produce(5, "orange")
    order.go_on(5)
    assert record(order, "lemon").rank == shown
    operator = Operator(order.world, "lemon", order.go_on)
    assert operator.run("order", "status") == 1
    assert f"ranks {shown} to " in capsys.readouterr().out
    order.world.watch.skips.add("lemon")
    assert operator.run("order", "resume", "--gap", "--yes") == 0
    order.world.decide_all()
    order.settle()
    own, others = order.records("lemon"), order.records("orange")
    assert own[-len(others) :] == others
    order.until(lambda: record(order, "lemon").digest == record(order, "orange").digest, 10)
    assert record(order, "lemon").accepted == record(order, "orange").accepted
    (runner,) = order.world.beside["lemon"].process.runners
    gaps = [each for each in runner.lane.checkpoint.gaps.values() if each.next > each.first]
    assert gaps
    order.produce(10)
    order.world.beside["lemon"].process.stand()
    order.until(lambda: order.homes() == {"lemon"}, 10)
    order.produce(10)
    order.settle()
    assert not any(order.faults().values())


def test_nobody_catches_up_past_a_gap_of_another_cluster(calm: Clusters) -> None:
    order = calm(4)
    order.start()
    order.commit(5)
    order.settle()
    early = order.world.names[-1]
    order.world.kill(early)
    order.world.kill("lemon")
    delete_most(order)
    order.world.watch.skips.update({"lemon", early})
    order.world.start("lemon")
    order.until(lambda: "appliance order resume --gap" in record(order, "lemon").stopped, 30)
    order.go_on(1)  # until others can read that
    assert Operator(order.world, "lemon", order.go_on).run("order", "resume", "--gap", "--yes") == 0
    order.until(lambda: record(order, "lemon").digest == record(order, "orange").digest, 20)
    for name in ("orange", "grape"):
        order.world.cut(early, name)
    order.world.start(early)
    order.go_on(20)
    assert record(order, early).rank == order.shown(early) < record(order, "lemon").rank
    order.world.mend()
    order.until(lambda: "appliance order resume --gap" in record(order, early).stopped, 30)
    order.go_on(1)
    assert Operator(order.world, early, order.go_on).run("order", "resume", "--gap", "--yes") == 0
    order.settle()


def test_resume_gap_is_refused_where_nothing_lacks(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.commit(5)
    order.settle()
    operator = Operator(order.world, "lemon", order.go_on)
    with pytest.raises(ApplianceError, match="lemon lacks no records that nobody has any more; nothing was changed"):
        operator.run("order", "resume", "--gap", "--yes")
    with pytest.raises(ApplianceError, match="expected --origin, --topic-name, --partition and --from, or --gap alone"):
        operator.run("order", "resume", "--gap", "--origin", "orange")
