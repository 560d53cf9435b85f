"""What stops an order is seen by its operator, and the commands that are printed then end it."""

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import pytest

from appliance.clock import now_ms
from appliance.errors import ApplianceError
from appliance.kafka.client.produce import append
from appliance.order.model.beats import Beat, encode_beat
from appliance.order.model.elections import NOT_LISTED
from appliance.order.names import BEATS_LOG
from appliance.order.pulse import misnamed
from appliance.program import PROGRAM
from tests.simulation.log import seen
from tests.simulation.order_operator import Operator
from tests.simulation.order_scenario import Calm, Clusters

_OF_LEMON = ("--origin", "lemon", "--topic-name", "orders", "--partition", "0")


@pytest.fixture
def order(calm: Clusters) -> Calm:
    """Three clusters, with the same records in each T-global."""
    order = calm(3)
    order.start()
    order.produce(30)
    order.settle()
    order.go_on(2)
    return order


def run(order: Calm, own: str, *words: str) -> int:
    return Operator(order.world, own, order.go_on).run(*words)


def status(order: Calm, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(order, "grape", "order", "status", "--json")
    return code, json.loads(capsys.readouterr().out)


def printed(remedy: str) -> list[str]:
    """The words of a printed command."""
    assert remedy.startswith(PROGRAM)
    return shlex.split(remedy.removeprefix(PROGRAM))


def test_case_1340_an_origin_that_was_made_anew_is_stopped_in_the_status_and_goes_on_as_printed(
    order: Calm, capsys: pytest.CaptureFixture[str]
) -> None:
    # The order was "ordered", nothing was to be taken, and the remedy in the log lacked three options that it needs.
    order.world.remake_topic("lemon", "orders")
    order.commit(20, "lemon")
    order.go_on(5)
    code, shown = status(order, capsys)
    assert (code, shown["state"]) == (1, "stopped")
    (origin,) = (each for each in shown["partitions"][0]["origins"] if each["cluster"] == "lemon")
    assert (origin["next_offset"], origin["backlog"]) == (0, origin["end_offset"])
    (problem,) = shown["problems"]
    assert problem["reason"] == str(order.faults()["orange"]["lemon:orders-0"])
    (remedy,) = problem["remedies"]
    assert run(order, "grape", *printed(remedy), "--yes") == 0
    order.go_on(5)
    assert status(order, capsys)[0] == 0


def test_case_1341_a_resume_is_not_done_before_the_home_has_done_it(order: Calm) -> None:
    # "done after 0.0 s": the offset of the topic before was compared with that of the new one.
    order.world.remake_topic("lemon", "orders")
    order.go_on(5)
    order.world.kill("orange")
    with pytest.raises(ApplianceError, match="not done within 3 s"):
        run(order, "orange", "order", "resume", *_OF_LEMON, "--from", "earliest", "--yes", "--wait", "3")


@pytest.mark.parametrize("damage", ["shortened", "written to"])
def test_case_1343_logs_of_an_order_that_hold_less_or_more_than_was_written_are_rebuilt_as_printed(
    damage: str, order: Calm, capsys: pytest.CaptureFixture[str]
) -> None:
    # The remedies were `appliance resume --from` and `appliance resume`, which a link has, and no order.
    log = order.world.brokers["grape"].topics["orders-global"].logs[0]
    held = len(seen(log))
    order.world.kill("grape")
    order.world.damaged.add("grape")
    order.world.watch.damaged.add(("grape", "orders"))
    order.world.truths["orders", 0].ranks.pop(log, None)
    if damage == "shortened":
        markers = [entry.base for entry in log.entries if entry.marker]
        log.truncate(max((base + 1 for base in markers[:-1]), default=0))
    while damage == "written to" and len(seen(log)) == held:  # a transaction may be aborted
        order.world.workloads["grape"].write(log)
        order.world.decide_all()
    order.world.start("grape")
    order.go_on(8)
    (problem,) = status(order, capsys)[1]["problems"]
    (remedy,) = problem["remedies"]
    assert run(order, "grape", *printed(remedy), "--yes") == 0
    order.world.watch.begin_again("grape", "orders")
    order.world.damaged.clear()
    order.settle()
    order.go_on(3)
    assert status(order, capsys)[0] == 0


@pytest.mark.parametrize("words", [(), ("--topic", "orders")])
def test_case_1375_a_t_global_that_is_compacted_is_not_rebuilt_but_goes_on_once_it_is_not(
    words: tuple[str, ...], order: Calm, capsys: pytest.CaptureFixture[str]
) -> None:
    # It was made anew, and all of it set aside, though a setting was all that was wrong.
    configs = order.world.brokers["grape"].topics["orders-global"].configs
    configs["cleanup.policy"] = "compact"
    order.world.kill("grape")
    order.world.start("grape")
    order.go_on(5)
    assert status(order, capsys)[1]["state"] == "stopped"
    with pytest.raises(ApplianceError, match=r"no rebuild ends that: .*set cleanup.policy=delete"):
        run(order, "grape", "order", "rebuild", *words, "--yes")
    configs["cleanup.policy"] = "delete"
    order.produce(20)
    order.settle()
    order.go_on(3)
    assert status(order, capsys)[0] == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((*_OF_LEMON, "--from", "1000000"), r"orders-0 of lemon ends at offset \d+, before 1000000"),
        ((*_OF_LEMON, "--from", "1"), r"the order goes on with orders-0 of lemon at offset \d+ already"),
        (
            ("--origin", "lemon", "--topic-name", "orders-global", "--partition", "0", "--from", "earliest"),
            "orders-global-0 of lemon is no part of the order",
        ),
        ((*_OF_LEMON, "--from", "²"), "expected an offset or earliest"),
    ],
)
def test_case_1342_a_resume_that_would_do_nothing_or_stop_for_good_is_refused(
    words: tuple[str, ...], reason: str, order: Calm
) -> None:
    # Past the end it stopped the origin for good, since no home goes back; the others were "done after 0.0 s".
    for more in ("--yes", "--dry-run"):
        with pytest.raises(ApplianceError, match=reason):
            run(order, "orange", "order", "resume", *words, more)
    order.produce(20, "lemon")
    order.settle()


def test_case_1373_a_home_whose_process_is_down_is_silent_and_of_two_clusters_the_other_one_takes_over_as_printed(
    calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its cluster answered: the order was "ordered", with exit code 0, and no T-global grew.
    order = calm(2)
    order.start()
    order.produce(20)
    order.settle()
    order.go_on(3)
    code, shown = status(order, capsys)
    assert (code, shown["problems"]) == (0, [])
    order.world.kill("orange")
    order.go_on(12)
    code, shown = status(order, capsys)
    assert (code, shown["state"]) == (1, "silent")
    (problem,) = shown["problems"]
    assert problem["subject"] == "orange"
    assert re.fullmatch(r"silent for 1[1-4] s: start its process; it is home: .*", problem["reason"])
    (remedy,) = problem["remedies"]
    assert run(order, "grape", *printed(remedy), "--yes") == 0
    order.world.start("orange")
    order.produce(20)
    order.settle()
    order.go_on(3)
    assert (order.homes(), status(order, capsys)[0]) == ({"grape"}, 0)


def test_case_1377_a_follower_whose_process_is_down_is_silent(order: Calm, capsys: pytest.CaptureFixture[str]) -> None:
    # Until somebody wrote the order was "ordered", and a move to it was "not done within 60 s".
    order.world.kill("lemon")
    order.go_on(12)
    code, shown = status(order, capsys)
    assert (code, shown["state"]) == (1, "silent")
    (problem,) = shown["problems"]
    assert (problem["subject"], problem["remedies"]) == ("lemon", [])
    assert re.fullmatch("silent for 1[0-4] s: start its process", problem["reason"])
    with pytest.raises(ApplianceError, match="it may be done later: see `appliance order status`"):
        run(order, "grape", "order", "move", "--to", "lemon", "--wait", "3")
    capsys.readouterr()
    run(order, "grape", "order", "status")
    assert "silent for" in capsys.readouterr().out
    order.world.start("lemon")
    order.settle()
    order.go_on(3)
    assert status(order, capsys)[0] == 0


def test_case_1373_of_a_home_without_beats_it_is_unknown_if_its_process_works(
    calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    order = calm(3)
    order.start()
    order.produce(20)
    order.settle()
    order.world.brokers["orange"].delete(BEATS_LOG.topic)
    code, shown = status(order, capsys)
    assert (code, shown["state"], shown["clusters"][0]["heard"]) == (1, "unknown", None)
    (problem,) = shown["problems"]
    assert "its beats cannot be read" in problem["reason"]


def test_case_1374_a_cluster_that_two_vms_call_by_two_ids_is_named_by_both(
    calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    # A typo in GLOBAL_CLUSTERS of one VM: nothing was logged, and no move to that cluster was ever done.
    order = calm(3)
    order.world.make_topic("orders", 1)
    order.world.start("orange")
    order.world.order = replace(order.world.order, listed=("orange", "graype", "lemon"))
    order.world.start("lemon")
    clusters = order.world.beside["lemon"].clusters
    clusters["graype"] = clusters.pop("grape")
    order.go_on(5)
    order.world.order = replace(order.world.order, listed=("orange", "grape", "lemon"))
    order.world.start("grape")
    order.until(lambda: len(order.faults()["lemon"]) > 1, 10)
    assert order.faults()["lemon"] == {
        "GLOBAL_CLUSTERS": f"grape: {NOT_LISTED}",
        "beats of graype": str(misnamed("grape")),
    }
    order.world.kill("grape")
    order.go_on(1)
    cluster = order.world.view("grape")

    async def beat() -> None:
        metadata = await cluster.metadata([BEATS_LOG.topic])
        await append(cluster, metadata, BEATS_LOG, [encode_beat(Beat("graype", ()), now_ms())])

    Operator(order.world, "grape", order.go_on).wait(order.loop.world, beat)
    code, shown = status(order, capsys)
    assert (code, shown["state"]) == (1, "unknown")
    assert f"unknown now: {misnamed('graype')}" in [each["reason"] for each in shown["problems"]]


def test_case_1376_a_cut_is_one_line_in_the_log_of_a_process_and_its_end_another_one(order: Calm) -> None:
    order.world.cut("grape", "orange")
    order.produce(20, "orange")
    order.go_on(10)
    notices = order.world.beside["grape"].notices
    assert notices == ["way to orange"]
    order.world.mend()
    order.settle()
    order.go_on(5)
    assert notices == ["way to orange"] * 2
