"""What operators see of an order, on simulated clusters."""

import json
from collections.abc import Callable

import pytest

from tests.simulation.order_operator import Operator
from tests.simulation.test_order_cases import Calm, calm

__all__ = ["calm"]

Clusters = Callable[[int], Calm]


@pytest.fixture
def order(calm: Clusters) -> Calm:
    """Three clusters, with some records in each T-global."""
    order = calm(3)
    order.world.make_topic("orders", 2)
    for name in order.world.names:
        order.world.start(name)
    for _ in range(60):
        order.world.write()
        order.go_on(0.02)
    order.settle()
    return order


@pytest.fixture
def told(order: Calm, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Gives the exit code and the output of a command beside a cluster."""

    def run(own: str, *words: str) -> tuple[int, str]:
        capsys.readouterr()
        return Operator(order.world, own, order.go_on).run(*words), capsys.readouterr().out

    return run


Told = Callable[..., tuple[int, str]]


def test_the_status_of_an_order_says_who_is_home_and_that_nobody_lacks_anything(order: Calm, told: Told) -> None:
    code, text = told("grape", "order", "status", "--json")
    seen = json.loads(text)
    assert (code, seen["state"], seen["problems"]) == (0, "ordered", [])
    assert seen["lanes"][0]["epoch"] == {"number": 1, "home": "orange"}
    assert sorted(seen["lanes"][0]["promised"]) == ["grape", "lemon", "orange"]
    for partition in seen["partitions"]:
        records = len(order.world.truths[partition["topic"], partition["partition"]].order)
        assert partition["length"] == records
        assert [(part["rank"], part["lacks"]) for part in partition["parts"]] == [(records, 0)] * 3
        assert [origin["backlog"] for origin in partition["origins"]] == [0, 0, 0]
    code, text = told("grape", "order", "status")
    assert code == 0
    assert "lane 0: home is orange, epoch 1 of orange since" in text


def test_the_status_of_an_order_says_nothing_of_a_cluster_behind_a_cut(order: Calm, told: Told) -> None:
    order.world.cut("grape", "orange")
    code, text = told("grape", "order", "status", "--json")
    seen = json.loads(text)
    assert (code, seen["state"]) == (1, "unknown")
    assert [each["unknown"] is None for each in seen["clusters"]] == [False, True, True]
    for partition in seen["partitions"]:
        assert (partition["open"], partition["length"]) == (None, None)
        assert {part["cluster"]: part["lacks"] for part in partition["parts"]} == {"grape": None, "lemon": None}
        assert {origin["backlog"] for origin in partition["origins"]} == {None}
    assert "unknown now" in told("grape", "order", "status")[1]
    assert told("lemon", "order", "status")[0] == 0


def test_the_status_of_an_order_knows_the_home_before_the_last_change(order: Calm, told: Told) -> None:
    order.world.beside["grape"].process.stand()
    order.settle()
    order.go_on(5)
    code, text = told("lemon", "order", "status", "--json")
    seen = json.loads(text)
    assert (code, seen["lanes"][0]["epoch"]["home"], seen["lanes"][0]["before"]["home"]) == (0, "grape", "orange")
