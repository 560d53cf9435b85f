"""What operators see of an order, on simulated clusters."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from tests.simulation.log import Entry, Log, contents, seen
from tests.simulation.order_operator import Operator
from tests.simulation.order_scenario import Calm, Clusters


@pytest.fixture
def order(calm: Clusters) -> Calm:
    """Three clusters, with some records in each T-global."""
    order = calm(3)
    order.world.make_topic("orders", 2)
    for name in order.world.names:
        order.world.start(name)
    for _ in range(150):
        order.world.write()
        order.go_on(0.02)
    order.settle()
    order.go_on(3)
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
    shown = json.loads(text)
    assert (code, shown["problems"]) == (0, [])
    assert shown["lanes"][0]["epoch"] == {"number": 1, "home": "orange"}
    assert sorted(shown["lanes"][0]["promised"]) == ["grape", "lemon", "orange"]
    for partition in shown["partitions"]:
        records = len(order.world.truths[partition["topic"], partition["partition"]].order)
        assert partition["length"] == records
        assert [(part["rank"], part["lacks"]) for part in partition["parts"]] == [(records, 0)] * 3
        for origin in partition["origins"]:
            log = order.world.brokers[origin["cluster"]].topics["orders"].logs[origin["partition"]]
            assert origin["backlog"] == log.stable_end - origin["next_offset"]
            assert not [offset for offset, _ in seen(log) if offset >= origin["next_offset"]]
    code, text = told("grape", "order", "status")
    assert code == 0
    assert "lane 0: home is orange, epoch 1 of orange since" in text


def test_the_status_of_an_order_says_nothing_of_a_cluster_behind_a_cut(order: Calm, told: Told) -> None:
    order.world.cut("grape", "orange")
    code, text = told("grape", "order", "status", "--json")
    shown = json.loads(text)
    assert (code, shown["state"]) == (1, "unknown")
    assert [each["unknown"] is None for each in shown["clusters"]] == [False, True, True]
    for partition in shown["partitions"]:
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
    shown = json.loads(text)
    assert (code, shown["lanes"][0]["epoch"]["home"], shown["lanes"][0]["before"]["home"]) == (0, "grape", "orange")


def test_records_of_t_global_are_traced_to_their_origins_and_back(order: Calm, told: Told) -> None:
    for name, brokers in order.world.brokers.items():
        log = brokers.topics["orders-global"].logs[0]
        for offset, record in seen(log)[::3]:
            code, text = told(name, "order", "origin", "orders", "0", str(offset), "--json")
            (line,) = json.loads(text)
            origin = order.world.brokers[line["to_cluster"]].topics["orders"].logs[0]
            assert (code, line["state"]) == (0, "exact")
            assert (line["to_offset"], record) in seen(origin)
            words = ("--from", line["to_cluster"], "--json")
            code, text = told("grape", "order", "origin", "orders", "0", str(line["to_offset"]), *words)
            assert code == 0
            assert {each["to_cluster"]: each["to_offset"] for each in json.loads(text)}[name] == offset


def test_an_offset_without_a_record_has_no_origin(order: Calm, told: Told) -> None:
    log = order.world.brokers["grape"].topics["orders-global"].logs[0]
    marker = max(entry.base for entry in log.entries if entry.marker)
    assert told("grape", "order", "origin", "orders", "0", str(marker)) == (
        1,
        f"orders-global-0 of grape offset {marker} is unknown: no record is there, but the marker of a transaction\n",
    )
    assert "past what is in the order" in told("grape", "order", "origin", "orders", "0", str(log.end))[1]
    assert (
        "past what is in the order of lemon"
        in told("grape", "order", "origin", "orders", "0", "5000", "--from", "grape")[1]
    )


def test_of_a_cluster_that_cannot_be_read_the_offset_is_unknown(order: Calm, told: Told) -> None:
    first = seen(order.world.brokers["grape"].topics["orders"].logs[0])[0][0]
    order.world.cut("grape", "orange")
    words = ("order", "origin", "orders", "0", str(first), "--from", "grape", "--json")
    code, text = told("grape", *words)
    states = {each["to_cluster"]: each["state"] for each in json.loads(text)}
    assert (code, states) == (1, {"orange": "unknown", "grape": "exact", "lemon": "exact"})


def test_a_verification_finds_one_order_with_every_record_of_every_origin(order: Calm, told: Told) -> None:
    code, text = told("grape", "verify", "--global", "--json")
    report = json.loads(text)
    assert (code, report["equal"]) == (0, True), text
    for number in range(2):
        records = len(order.world.truths["orders", number].order)
        of = {
            (each["topic"], each["copy"]): each["records"]
            for each in report["partitions"]
            if each["partition"] == number
        }
        assert [of.pop(pair) for pair in list(of) if "global" in pair[0] or not pair[0]] == [records] * 3
        assert {pair[0].partition(":")[0] for pair in of} == {*order.world.names}
        assert sum(of.values()) == records
    assert told("grape", "verify", "--global")[0] == 0


def test_case_1372_each_row_of_a_verification_names_its_topics_and_clusters(order: Calm, told: Told) -> None:
    # The rows of the longest T-global had no topic, and those of all others had the same one.
    order.world.make_topic("payments", 1)
    order.go_on(3)
    _, text = told("grape", "verify", "--global")
    found = [tuple(cell.strip() for cell in line.split("│")[1:3]) for line in text.splitlines() if " equal " in line]
    longest = {"orange:orders-global", "orange:payments-global"}
    others = {f"{each} and {each.replace('orange', name)}" for each in longest for name in ("grape", "lemon")}
    assert {title for title, _ in found} == longest | others | {
        f"{name}:orders and orange:orders-global" for name in order.world.names
    }
    assert len(found) == len({*found}) == 15


def logs_of(order: Calm, cluster: str, topic: str) -> Log:
    return order.world.brokers[cluster].topics[topic].logs[0]


def of_records(log: Log) -> list[Entry]:
    return [entry for entry in log.entries if not entry.marker and entry.outcome]


_PLACE = 16
"""Bytes of a batch's header that say where it lies."""


def exchange_two(*logs: Log) -> Log:
    """Have two batches of different contents in each other's place, in one of these logs."""
    pairs = ((log, pair) for log in logs for pair in combinations(of_records(log), 2))
    log, (one, other) = next((log, pair) for log, pair in pairs if sizes(pair[0]) == sizes(pair[1]) and differ(*pair))
    one.data, other.data = one.data[:_PLACE] + other.data[_PLACE:], other.data[:_PLACE] + one.data[_PLACE:]
    one.records, other.records = other.records, one.records
    return log


def sizes(entry: Entry) -> tuple[int, int]:
    return len(entry.data), len(contents(entry))


def differ(one: Entry, other: Entry) -> bool:
    return contents(one) != contents(other)


def rows(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The results of partition 0, by what was compared with what."""
    return {(each["topic"], each["copy"]): each for each in json.loads(text)["partitions"] if not each["partition"]}


def test_a_verification_finds_a_t_global_in_another_order(order: Calm, told: Told) -> None:
    exchange_two(logs_of(order, "grape", "orders-global"))
    code, text = told("lemon", "verify", "--global", "--json")
    found = rows(text)
    bad = {pair for pair, each in found.items() if each["state"] != "equal"}
    assert (code, bad) == (1, {("orange:orders-global", "grape:orders-global")})
    (difference,) = (found[pair] for pair in bad)
    found_at = re.fullmatch(r"at rank (\d+): .*", difference["detail"])
    assert found_at is not None
    rank = int(found_at[1])
    shown = [record for _, record in seen(logs_of(order, "grape", "orders-global"))]
    assert rank == next(n for n, record in enumerate(order.world.truths["orders", 0].order) if record != shown[n])
    assert difference["differs_at"] == seen(logs_of(order, "orange", "orders-global"))[rank][0]


def test_a_verification_finds_an_origin_whose_records_are_in_another_order(order: Calm, told: Told) -> None:
    logs = {logs_of(order, name, "orders"): name for name in order.world.names}
    origin = logs[exchange_two(*logs)]
    code, text = told("lemon", "verify", "--global", "--json")
    bad = {pair for pair, each in rows(text).items() if each["state"] != "equal"}
    assert (code, bad) == (1, {(f"{origin}:orders", "orange:orders-global")})


@pytest.mark.parametrize("cluster", ["orange", "grape"])
def test_a_verification_finds_a_record_that_is_lost(cluster: str, order: Calm, told: Told) -> None:
    log = logs_of(order, cluster, "orders-global")
    log.entries.remove(of_records(log)[3])
    code, text = told("lemon", "verify", "--global", "--json")
    bad = {pair for pair, each in rows(text).items() if each["state"] != "equal"}
    assert code == 1
    assert ("orange:orders-global", "grape:orders-global") in bad
    assert (("", "orange:orders-global") in bad) == (cluster == "orange")


def test_a_verification_says_what_it_did_not_look_at(order: Calm, told: Told) -> None:
    order.world.cut("grape", "lemon")
    for cluster, topic in (("orange", "orders"), ("grape", "orders-global")):
        log = logs_of(order, cluster, topic)
        log.delete_before(of_records(log)[len(of_records(log)) // 2].base)
    code, text = told("grape", "verify", "--global", "--json", "--topic", "orders")
    found = rows(text)
    assert code == 1
    assert {pair for pair, each in found.items() if each["state"] == "not compared"} == {
        ("", "lemon"),
        ("lemon:orders", "orange:orders-global"),
    }
    assert "lemon was not looked at: the tunnel" in found["", "lemon"]["detail"]
    others = {pair: each for pair, each in found.items() if each["state"] != "not compared"}
    assert {each["state"] for each in others.values()} == {"equal", "equal in part"}
    first = seen(logs_of(order, "grape", "orders-global"))[0][1]
    rank = order.world.truths["orders", 0].order.index(first)
    cut = others["orange:orders-global", "grape:orders-global"]
    assert (cut["records"], cut["detail"]) == (
        len(order.world.truths["orders", 0].order) - rank,
        f"records before rank {rank} were not compared: retention has deleted them",
    )
    assert "retention has deleted them" in others["orange:orders", "orange:orders-global"]["detail"]


def test_a_verification_lets_others_catch_up_for_a_while(order: Calm, told: Told) -> None:
    order.world.kill("grape")
    for _ in range(20):
        order.world.write()
        order.go_on(0.02)
    order.go_on(3)
    code, text = told("lemon", "verify", "--global", "--json", "--wait", "1")
    assert code == 1
    states = {pair: each["state"] for pair, each in rows(text).items() if each["state"] != "equal"}
    assert states == {("orange:orders-global", "grape:orders-global"): "behind"}
    order.world.start("grape")
    assert told("lemon", "verify", "--global", "--json", "--wait", "30")[0] == 0


def test_one_order_over_all_partitions_is_shown_traced_and_verified(
    calm: Clusters, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    order = calm(3)
    monkeypatch.setattr(order.world, "_check", lambda _: None)  # it knows orders of one partition each
    order.world.order = replace(order.world.order, single=True)
    order.world.make_topic("orders", 2)
    for name in order.world.names:
        order.world.start(name)
    for _ in range(60):
        order.world.write()
        order.go_on(0.02)
    order.world.decide_all()
    order.go_on(10)
    operator = Operator(order.world, "grape", order.go_on)
    assert operator.run("order", "status", "--json") == 0
    (partition,) = json.loads(capsys.readouterr().out)["partitions"]
    written = sum(len(seen(log)) for brokers in order.world.brokers.values() for log in brokers.topics["orders"].logs)
    assert (partition["length"], len(partition["origins"])) == (written, 6)
    assert operator.run("verify", "--global", "--json") == 0
    results = json.loads(capsys.readouterr().out)["partitions"]
    assert sum(each["records"] for each in results if each["topic"].endswith(":orders")) == written
    for offset, record in seen(logs_of(order, "grape", "orders-global")):
        assert operator.run("order", "origin", "orders", "0", str(offset), "--json") == 0
        (line,) = json.loads(capsys.readouterr().out)
        origin = order.world.brokers[line["to_cluster"]].topics["orders"].logs[line["to_partition"]]
        assert (line["to_offset"], record) in seen(origin)
        place = str(line["to_partition"]), str(line["to_offset"])
        words = ("orders", *place, "--from", line["to_cluster"], "--cluster", "grape", "--json")
        assert operator.run("order", "origin", *words) == 0
        (back,) = json.loads(capsys.readouterr().out)
        assert (back["to_partition"], back["to_offset"]) == (0, offset)
