"""Cases in which a T-global with a gap broke what an order promises, found by attacking it."""

import json
from copy import copy, deepcopy
from dataclasses import replace

import pytest

from appliance.errors import ApplianceError, Unreachable
from appliance.kafka.records.outgoing import UNLIMITED
from appliance.link.model.order import OrderRecord
from appliance.order.catch_up import catch_up
from appliance.order.learning import Learned
from appliance.order.model.rebuilding import Beginning
from appliance.order.peers import Peer
from tests.simulation.brokers import NODES
from tests.simulation.log import seen
from tests.simulation.order_operator import Operator
from tests.simulation.order_scenario import Calm, Clusters
from tests.simulation.test_order_gaps import KEY, delete_most, late, record

OF_LEMON = ("--origin", "lemon", "--topic-name", "orders", "--partition", "0", "--from", "earliest", "--yes")


def trim(order: Calm, kept: int = 2) -> None:
    """Orange and grape have only the newest entries of T-global any more, and trim their hidden logs."""
    for name in ("orange", "grape"):
        topics = order.world.brokers[name].topics
        shown, hidden = topics["orders-global"].logs[0], topics["replicator-order.orders.hidden"].logs[0]
        shown.delete_before(shown.entries[-kept].base if kept else shown.end)
        hidden.delete_before(hidden.end)


def write(order: Calm, name: str, times: int) -> None:
    """Some producer in a cluster writes so often, and commits or aborts."""
    for _ in range(times):
        order.world.workloads[name].write(order.world.brokers[name].topics["orders"].logs[0])
        order.world.decide_all()
        order.go_on(0.1)


def resume(order: Calm) -> None:
    """Lemon goes on after what nobody has any more, and has all that comes after that."""
    order.world.watch.skips.add("lemon")
    assert Operator(order.world, "lemon", order.go_on).run("order", "resume", "--gap", "--yes") == 0
    order.settle()
    order.until(lambda: record(order, "lemon").digest == record(order, "orange").digest, 20)
    order.go_on(3)


@pytest.mark.parametrize("longest", ["orange", "lemon"])
@pytest.mark.parametrize("earlier", [0, 10])
def test_case_1380_a_verification_knows_where_a_t_global_with_a_gap_goes_on(
    earlier: int, longest: str, calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    order = calm(3)
    late(order, earlier=earlier)
    resume(order)
    if longest == "lemon":
        order.world.cut("lemon", "orange")
        order.world.cut("lemon", "grape")
    capsys.readouterr()
    code = Operator(order.world, "lemon", order.go_on).run("verify", "--global", "--json")
    rows = json.loads(capsys.readouterr().out)["partitions"]
    assert not [row for row in rows if row["state"] == "differs"]
    assert code == (1 if longest == "lemon" else 0)


def test_case_1381_nothing_is_rebuilt_from_a_t_global_with_a_gap_without_gap(calm: Clusters) -> None:
    order = calm(3)
    late(order, earlier=10)
    resume(order)
    operator = Operator(order.world, "grape", order.go_on)
    with pytest.raises(ApplianceError, match="retention has deleted the first records"):
        operator.run("order", "rebuild", "--topic", "orders", "--yes")


def test_case_1382_a_home_goes_on_with_an_origin_whose_leader_has_changed_in_a_gap(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.commit(20)
    order.settle()
    order.world.kill("lemon")
    grape = order.world.brokers["grape"]
    origin = grape.topics["orders"].logs[0]
    for node in NODES[1:3]:
        grape.lead(origin, node)
        order.commit(10, "grape")
        order.go_on(3)
    for _ in range(3):
        order.commit(10, "orange")
        order.go_on(3)
    trim(order)
    order.world.start("lemon")
    order.until(lambda: "appliance order resume --gap" in record(order, "lemon").stopped, 30)
    order.go_on(1)
    resume(order)
    order.world.kill("orange")
    order.world.beside["lemon"].process.stand()
    order.until(lambda: order.homes() == {"lemon"}, 20)
    order.commit(10, "grape", "lemon")
    order.go_on(10)
    assert not order.world.unsettled("grape", "lemon"), order.faults()["lemon"]


def test_case_1383_the_operators_word_holds_for_one_gap(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.commit(10)
    order.settle()
    order.world.kill("lemon")
    order.commit(10, "orange")
    order.go_on(3)
    trim(order, kept=0)
    order.world.start("lemon")
    order.until(lambda: "appliance order resume --gap" in record(order, "lemon").stopped, 30)
    order.go_on(1)
    resume(order)
    gaps = len(order.world.beside["lemon"].process.runners[0].lane.checkpoint.gaps)
    order.world.cut("lemon", "orange")
    order.world.cut("lemon", "grape")
    order.go_on(1)
    order.commit(20, "orange")
    order.go_on(3)
    trim(order)
    order.world.mend()
    order.until(lambda: "appliance order resume --gap" in record(order, "lemon").stopped, 30)
    assert len(order.world.beside["lemon"].process.runners[0].lane.checkpoint.gaps) == gaps


def test_case_1384_no_t_global_is_deleted_that_nobody_could_fill_since_an_origin_was_made_anew(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.commit(10)
    order.settle()
    order.world.remake_topic("lemon", "orders")
    order.commit(5, "lemon")
    order.go_on(5)
    assert Operator(order.world, "grape", order.go_on).run("order", "resume", *OF_LEMON) == 0
    order.commit(20)
    order.go_on(10)
    for name in ("orange", "grape"):
        hidden = order.world.brokers[name].topics["replicator-order.orders.hidden"].logs[0]
        hidden.delete_before(hidden.end)
    operator, shown = Operator(order.world, "grape", order.go_on), order.world.brokers["grape"].topics["orders-global"]
    with pytest.raises(ApplianceError, match="no other cluster knows where all records of orders-0 come from"):
        operator.run("order", "rebuild", "--topic", "orders", "--yes")
    assert order.world.brokers["grape"].topics["orders-global"] is shown


def test_case_1385_records_of_an_origin_from_before_and_after_it_was_made_anew_are_followed_in_one_transaction(
    calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    # The process ended in an IndexError, and again after each start.
    order = calm(3)
    order.start()
    order.commit(20)
    order.settle()
    order.world.order = replace(order.world.order, commit_bytes=2**24)
    order.world.kill("grape")
    write(order, "lemon", 40)
    order.go_on(3)
    order.world.remake_topic("lemon", "orders")
    write(order, "lemon", 1)
    order.go_on(5)
    assert Operator(order.world, "lemon", order.go_on).run("order", "resume", *OF_LEMON) == 0
    write(order, "lemon", 5)
    order.go_on(5)
    before = record(order, "grape").rank
    order.world.start("grape")
    order.go_on(10)
    assert before < record(order, "grape").rank == record(order, "orange").rank
    operator = Operator(order.world, "grape", order.go_on)
    new = [offset for offset, _ in seen(order.world.brokers["lemon"].topics["orders"].logs[0])]
    for offset in new:
        assert operator.run("order", "origin", "orders", "0", str(offset), "--from", "lemon") == 0
    shown = [offset for offset, _ in seen(order.world.brokers["grape"].topics["orders-global"].logs[0])]
    capsys.readouterr()
    for offset in shown:
        operator.run("order", "origin", "orders", "0", str(offset))
    assert capsys.readouterr().out.count(" is orders-0 of lemon offset") == len(new)


def test_case_1387_nobody_says_that_a_cluster_lacks_nothing_while_another_one_does_not_answer(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.commit(10)
    order.settle()
    order.world.kill("lemon")
    for _ in range(2):
        order.commit(20, "orange", "grape")
        order.go_on(3)
    trim(order)
    order.world.cut("lemon", "grape")
    order.world.start("lemon")
    order.go_on(20)
    operator = Operator(order.world, "lemon", order.go_on)
    with pytest.raises(ApplianceError, match="nobody has the records that it lacks, while grape does not answer"):
        operator.run("order", "resume", "--gap", "--yes")


def test_case_1386_records_from_before_an_origin_was_made_anew_are_no_difference(
    calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    order = calm(3)
    order.start()
    order.commit(10)
    order.settle()
    order.world.remake_topic("lemon", "orders")
    write(order, "lemon", 5)
    order.go_on(5)
    operator = Operator(order.world, "grape", order.go_on)
    assert operator.run("order", "resume", *OF_LEMON) == 0
    order.commit(10)
    order.go_on(10)
    capsys.readouterr()
    operator.run("verify", "--global", "--json")
    assert not [row for row in json.loads(capsys.readouterr().out)["partitions"] if row["state"] == "differs"]
    for offset, _ in seen(order.world.brokers["grape"].topics["orders-global"].logs[0]):
        operator.run("order", "origin", "orders", "0", str(offset))
    out = capsys.readouterr().out
    assert "it is a record of lemon:orders-0 from before that was made anew" in out
    assert "no record is there" not in out


def test_case_1430_an_old_fact_of_a_cluster_and_the_new_start_of_its_log_make_no_gap(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.commit(10)
    order.settle()
    (runner,) = order.world.beside["grape"].process.runners
    newest = runner.partitions[KEY].peers["orange"]
    old = copy(newest)
    old.checkpoint = deepcopy(newest.checkpoint)
    delete_most(order)

    def brought(peer: Peer) -> Beginning | Learned | None:
        work = catch_up(KEY, OrderRecord(), {}, peer, runner.lane.naming, UNLIMITED, 1 << 20, single=False)
        task = order.loop.start(order.loop.world, work)
        order.loop.run_while(lambda: not task.done())
        return task.result()

    with pytest.raises(Unreachable, match=r"nobody knows where|is needed"):
        brought(old)
    begins = brought(newest)
    assert isinstance(begins, Beginning)
    assert begins.rank > old.record(KEY).rank
