"""Commands that change an order, run on simulated clusters as an operator runs them."""

from dataclasses import replace

import pytest

from appliance.errors import ApplianceError
from tests.simulation import order_world
from tests.simulation.order_operator import Operator
from tests.simulation.order_scenario import Calm, Clusters


def operator(order: Calm, own: str = "orange") -> Operator:
    return Operator(order.world, own, order.go_on)


def test_a_move_makes_another_cluster_home_while_all_run(calm: Clusters, capsys: pytest.CaptureFixture[str]) -> None:
    order = calm(3)
    order.start()
    order.produce(30)
    assert operator(order, "grape").run("order", "move", "--to", "lemon") == 0
    assert "done after" in capsys.readouterr().out
    order.until(lambda: order.homes() == {"lemon"}, 5)
    order.produce(30)
    order.settle()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("move", "--to", "melon"), "none of the clusters in GLOBAL_CLUSTERS"),
        (("move", "--to", "orange"), "is home already"),
        (("move", "--to", "grape", "--lost", "grape"), "cannot be lost and become home"),
        (("join", "grape"), "is a member already"),
        (("leave", "orange"), "order move --to"),
        (("resume", "--origin", "plum", "--topic-name", "orders", "--partition", "0", "--from", "earliest"), "plum"),
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(
    words: tuple[str, ...],
    reason: str,
    calm: Clusters,
    capsys: pytest.CaptureFixture[str],
) -> None:
    order = calm(3)
    order.start()
    order.produce(10)
    order.settle()
    with pytest.raises(ApplianceError, match=reason) as refused:
        operator(order).run("order", *words, "--json")
    assert refused.value.exit_code == (0 if reason.endswith("already") else 1)  # nothing to do is no failure
    assert bool(capsys.readouterr().out) == reason.endswith("already")  # and shows the order as it is
    assert order.homes() == {"orange"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("move", "--to", "grape"), "would move the home to grape"),
        (("move", "--to", "grape", "--lost", "lemon"), "would move the home to grape, without lemon"),
        (("leave", "lemon"), "would end the membership of lemon"),
        (("alone",), "would let the home show what no other cluster has"),
        (
            ("resume", "--origin", "grape", "--topic-name", "orders", "--partition", "0", "--from", "3"),
            "would go on with orders-0 of grape at offset 3",
        ),
    ],
)
def test_case_1330_a_dry_run_says_in_words_what_it_would_do_and_does_not(
    words: tuple[str, ...],
    said: str,
    calm: Clusters,
    capsys: pytest.CaptureFixture[str],
) -> None:
    order = calm(3)
    order.start()
    order.go_on(3)
    order.world.cut("orange", "grape")  # the home takes nothing of what follows
    order.commit(10, "grape")
    assert operator(order, "lemon").run("order", *words, "--dry-run") == 0
    assert capsys.readouterr().out == f"{said}\n"
    order.go_on(5)
    assert order.homes() == {"orange"}


def test_a_home_that_does_not_answer_is_moved_by_the_operators_word_alone(calm: Clusters) -> None:
    order = calm(2)
    order.start()
    order.produce(20)
    order.settle()
    order.world.kill("orange")
    order.world.cut("grape", "orange")
    with pytest.raises(ApplianceError, match="--lost orange"):
        operator(order, "grape").run("order", "move", "--to", "grape")
    assert operator(order, "grape").run("order", "move", "--to", "grape", "--lost", "orange", "--yes") == 0
    order.world.mend()
    order.world.start("orange")
    order.produce(20)
    order.settle()
    assert order.homes() == {"grape"}


def test_a_cluster_leaves_and_joins_again_by_commands(calm: Clusters) -> None:
    order = calm(4)
    order.start()
    order.produce(20)
    assert operator(order).run("order", "leave", "melon") == 0
    order.produce(20)
    order.settle()  # as a guest it still gets all
    assert operator(order).run("order", "join", "melon") == 0
    order.until(lambda: {len(members) for members in order.memberships()} == {4}, 5)
    order.settle()


@pytest.mark.parametrize("records_gaps", [False, True])
def test_an_origin_that_retention_has_overtaken_stops_alone_or_goes_on_with_an_entry_in_the_ledger(
    records_gaps: bool,
    calm: Clusters,
) -> None:
    order = calm(3)
    order.world.order = replace(order.world.order, records_gaps=records_gaps)
    order.start()
    order.produce(10)
    order.settle()
    for pair in (("orange", "lemon"), ("grape", "lemon")):
        order.world.cut(*pair)  # the home takes nothing of lemon
    order.commit(20, "lemon")
    log = order.world.brokers["lemon"].topics["orders"].logs[0]
    log.delete_before(log.end - 2)
    order.world.mend()
    order.produce(20, "orange", "grape")
    order.go_on(5)
    (runner,) = order.world.beside["orange"].process.runners
    before, faults = order.shown("grape"), str(order.faults()["orange"])
    assert "deleted at the source" in faults
    assert bool(runner.lane.checkpoint.gaps) == records_gaps
    order.commit(5, "lemon")
    if not records_gaps:
        words = ("--origin", "lemon", "--topic-name", "orders", "--partition", "0", "--from", "earliest", "--yes")
        assert operator(order).run("order", "resume", *words) == 0
    order.until(lambda: order.shown("grape") > before, 20)


@pytest.fixture
def black_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cluster behind a cut, nothing is heard for as long as a real client dials its brokers."""
    monkeypatch.setattr(order_world, "TIMEOUTS", replace(order_world.TIMEOUTS, connect=40.0))


@pytest.mark.usefixtures("black_hole")
def test_case_1370_a_move_does_not_wait_for_a_cluster_that_it_does_not_need(calm: Clusters) -> None:
    # Each look at the order waited 20 s for lemon, and a move was never done before the third one.
    order = calm(3)
    order.start()
    order.produce(20)
    order.settle()
    order.world.kill("lemon")
    for name in ("orange", "grape"):
        order.world.cut(name, "lemon")
    began = order.loop.time()
    assert operator(order, "grape").run("order", "move", "--to", "grape") == 0
    assert order.loop.time() - began < 8
    order.until(lambda: order.homes() == {"grape"}, 5)


@pytest.mark.usefixtures("black_hole")
def test_case_1370_a_move_without_enough_votes_is_refused_with_the_clusters_that_do_not_answer(calm: Clusters) -> None:
    # It waited for 60 s, and the home had stopped taking.
    order = calm(4)
    order.start()
    order.produce(10)
    order.settle()
    for name in ("lemon", "melon"):
        order.world.cut("grape", name)
    with pytest.raises(ApplianceError, match=r"too few clusters answer here.* --to grape --lost lemon,melon"):
        operator(order, "grape").run("order", "move", "--to", "grape")
    words = ("move", "--to", "grape", "--lost", "lemon,melon", "--dry-run")
    assert operator(order, "grape").run("order", *words) == 0


def test_case_1378_a_move_to_a_cluster_whose_way_is_just_coming_back_is_not_refused(calm: Clusters) -> None:
    # bin/demo --global: "orange does not answer", four seconds after its VM was started again.
    order = calm(3)
    order.start()
    order.produce(20)
    order.settle()
    order.world.cut("grape", "lemon")
    order.loop.at(order.loop.time() + 5, order.loop.world, order.world.mend)
    assert operator(order, "grape").run("order", "move", "--to", "lemon") == 0
    order.until(lambda: order.homes() == {"lemon"}, 5)
