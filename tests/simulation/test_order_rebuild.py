"""T-globals that are made anew by an operator's command, since they are no part of the order any more."""

import contextlib
import json
from collections.abc import Awaitable, Callable
from unittest import mock

import pytest

from appliance.errors import ApplianceError
from appliance.link.model.order import OrderRecord
from appliance.order.model.rebuilding import REBUILDING, is_stopped
from tests.simulation.log import seen
from tests.simulation.loop import Life
from tests.simulation.order_operator import Operator
from tests.simulation.order_scenario import Calm, Clusters
from tests.simulation.test_killed_commands import _READS

ASIDE = "orders-global.aside-2"


def diverged(order: Calm) -> list[object]:
    """Have orange, alone, show what grape orders otherwise; the records that orange alone has shown."""
    order.start(partitions=2)
    order.commit(20)
    order.part(records=20, seconds=2)
    order.go_on(8)
    return alone(order)


def alone(order: Calm) -> list[object]:
    """The records that orange has shown after its T-global and that of grape part."""
    only: list[object] = []
    for number in range(2):
        own, theirs = order.records("orange", number), order.records("grape", number)
        same = next((at for at, pair in enumerate(zip(own, theirs, strict=False)) if pair[0] != pair[1]), None)
        if part(order, number).stopped:
            only += own[min(len(own), len(theirs)) if same is None else same :]
    assert only
    return only


def part(order: Calm, number: int = 0, name: str = "orange") -> OrderRecord:
    (runner,) = order.world.beside[name].process.runners
    return runner.lane.record(next(key for key in runner.partitions if key.number == number))


def aside(order: Calm) -> list[object]:
    return [record for log in order.world.brokers["orange"].topics[ASIDE].logs for _, record in seen(log)]


def is_whole_again(order: Calm) -> None:
    """All T-globals are equal, all clusters vote, and all goes on."""
    order.world.damaged.clear()
    order.settle()
    order.produce(10)
    order.settle()
    order.until(lambda: not any(part(order, number).stopped for number in range(2)), 20)
    order.go_on(3)
    for number in range(2):
        assert len({tuple(order.records(name, number)) for name in order.world.names}) == 1
    assert not order.faults()["orange"]


def test_a_rebuilt_cluster_has_the_order_of_the_others_and_keeps_aside_what_it_alone_has_shown(
    calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    order = calm(2)
    only = diverged(order)
    operator = Operator(order.world, "orange", order.go_on)
    assert operator.run("order", "rebuild", "--dry-run", "--json") == 0
    (foretold,) = json.loads(capsys.readouterr().out)
    assert sum(each["records"] for each in foretold["partitions"]) == len(only)
    assert ASIDE not in order.world.brokers["orange"].topics
    assert operator.run("order", "rebuild", "--yes") == 0
    assert f"{len(only)} records that it alone has shown" in capsys.readouterr().out
    is_whole_again(order)
    assert sorted(map(str, aside(order))) == sorted(map(str, only))


def test_the_places_of_origins_are_known_again_after_a_rebuild(
    calm: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    order = calm(2)
    diverged(order)
    operator = Operator(order.world, "orange", order.go_on)
    operator.run("order", "rebuild", "--yes")
    is_whole_again(order)
    for offset, record in seen(order.t_global("orange")):
        capsys.readouterr()
        assert operator.run("order", "origin", "orders", "0", str(offset), "--json") == 0
        (line,) = json.loads(capsys.readouterr().out)
        origin = order.world.brokers[line["to_cluster"]].topics["orders"].logs[0]
        assert (line["to_offset"], record) in seen(origin)


@pytest.mark.parametrize("carried_out", [False, True])
def test_a_rebuild_that_was_killed_at_any_write_is_finished_by_the_same_command(
    carried_out: bool, calm: Clusters
) -> None:
    write = 0
    while True:
        write += 1
        order = calm(2)
        only = diverged(order)
        operator = Operator(order.world, "orange", order.go_on)
        count = killed_at(order, write, carried_out)
        order.go_on(3)
        if any(is_stopped(part(order, number)) for number in range(2)):
            assert operator.run("order", "rebuild", "--yes") == 0
        is_whole_again(order)
        assert sorted(map(str, aside(order))) == sorted(map(str, only))
        order.loop.close()
        if count < write:
            break
    assert write > 5


def killed_at(order: Calm, write: int, carried_out: bool) -> int:
    """Kill the command at its write of this number; the number of its writes."""
    count = 0
    operator = Operator(order.world, "orange", order.go_on)

    class Killed(Exception):
        """The command was killed."""

    def trapped(life: Life) -> None:
        def trap(request: str, is_carried_out: bool) -> None:
            nonlocal count
            if request not in _READS and is_carried_out == carried_out:
                count += 1
                life.alive = count != write

        life.trap = trap

    def go_on(seconds: float) -> None:
        order.go_on(seconds)
        if lives and not lives[-1].alive:
            raise Killed

    lives: list[Life] = []
    wait = operator.wait

    def waiting(life: Life, work: Callable[[], Awaitable[object]]) -> object:
        lives.append(life)
        trapped(life)
        return wait(life, work)

    with mock.patch.multiple(operator, wait=waiting, _go_on=go_on), contextlib.suppress(Killed):
        operator.run("order", "rebuild", "--yes")
    return count


def test_a_t_global_that_somebody_has_deleted_is_rebuilt_with_nothing_to_set_aside(calm: Clusters) -> None:
    order = calm(3)
    order.start(partitions=2)
    order.produce(40)
    order.settle()
    order.world.beside["grape"].process.stand()
    order.settle()
    order.world.damage("orange", "orders")
    order.until(lambda: "appliance order rebuild" in str(order.faults()["orange"]), 30)
    order.go_on(8)
    order.produce(20)
    assert Operator(order.world, "orange", order.go_on).run("order", "rebuild", "--yes") == 0
    order.world.watch.begin_again("orange", "orders")
    is_whole_again(order)
    assert not [name for name in order.world.brokers["orange"].topics if ".aside-" in name]


def test_a_cluster_votes_again_once_it_has_what_it_may_have_acknowledged(calm: Clusters) -> None:
    order = calm(3)
    order.start(partitions=2)
    order.produce(40)
    order.settle()
    order.world.beside["grape"].process.stand()
    order.settle()
    order.go_on(8)
    before = [part(order, number).rank for number in range(2)]
    order.world.kill("orange")
    order.world.cut("orange", "grape")
    order.world.mend()
    order.world.watch.damaged.add(("orange", "orders"))
    for log in order.world.brokers["orange"].topics["orders-global"].logs:
        order.world.truths["orders", log.number].ranks.pop(log, None)
    assert Operator(order.world, "orange", order.go_on).run("order", "rebuild", "--topic", "orders", "--yes") == 0
    order.world.cut("orange", "grape")
    order.world.cut("orange", "lemon")
    order.world.start("orange")
    order.go_on(8)
    assert {part(order, number).stopped for number in range(2)} == {REBUILDING}
    assert [part(order, number).owes for number in range(2)] >= before
    order.world.watch.begin_again("orange", "orders")
    order.world.mend()
    is_whole_again(order)


def test_a_rebuild_that_cannot_be_is_refused_and_so_is_its_dry_run(calm: Clusters) -> None:
    order = calm(2)
    order.start(partitions=2)
    order.produce(20)
    order.settle()
    for words, reason in [
        (("--yes",), "nothing is stopped"),
        (("--topic", "orders", "--yes"), "orange is home of orders-0: `appliance order move --to`"),
    ]:
        for more in ((), ("--dry-run",)):
            with pytest.raises(ApplianceError, match=reason):
                Operator(order.world, "orange", order.go_on).run("order", "rebuild", *words, *more)
    order.world.cut("grape", "orange")
    with pytest.raises(ApplianceError, match="orange, the home of orders-0, does not answer"):
        Operator(order.world, "grape", order.go_on).run("order", "rebuild", "--topic", "orders", "--yes")
    order.world.mend()
    is_whole_again(order)


def test_case_1344_a_t_global_is_not_deleted_where_nobody_has_its_first_records_any_more(calm: Clusters) -> None:
    # T-global was deleted and stayed empty for ever: nobody had what it begins with.
    order = calm(3)
    order.start()
    order.produce(30)
    order.settle()
    for name in ("orange", "lemon"):
        log = order.t_global(name)
        log.delete_before(log.end - 1)
    kept = seen(order.t_global("grape"))
    for more in ("--dry-run", "--yes"):
        with pytest.raises(ApplianceError, match="retention has deleted the first records of orders-global-0"):
            Operator(order.world, "grape", order.go_on).run("order", "rebuild", "--topic", "orders", more)
    assert seen(order.t_global("grape")) == kept
    order.produce(10)
    order.settle()


def test_a_t_global_is_rebuilt_from_the_first_records_that_others_have_by_the_operators_word(calm: Clusters) -> None:
    order = calm(3)
    order.start()
    order.commit(30)
    order.settle()
    order.expire("orange", "lemon")
    operator, watch = Operator(order.world, "grape", order.go_on), order.world.watch
    watch.damaged.add(("grape", "orders"))
    order.world.truths["orders", 0].ranks.pop(order.t_global("grape"))
    assert operator.run("order", "rebuild", "--topic", "orders", "--gap", "--yes") == 0
    watch.begin_again("grape", "orders")
    watch.skips.add("grape")
    order.until(lambda: "resume --gap" in part(order, 0, "grape").stopped, 30)
    order.go_on(1)
    assert operator.run("order", "resume", "--gap", "--yes") == 0
    order.settle()
    order.produce(10)
    order.settle()
    own, others = order.records("grape"), order.records("orange")
    assert own == others[-len(own) :]


def test_case_1300_a_t_global_that_was_made_anew_is_noticed_while_there_is_nothing_to_write(calm: Clusters) -> None:
    # Only a start of the lane looked at the topic's id: an idle cluster voted with what it had no more.
    order = calm(3)
    order.start(partitions=2)
    order.produce(20)
    order.settle()
    order.world.damage("grape", "orders")
    order.until(lambda: bool(part(order, 0, "grape").stopped and part(order, 1, "grape").stopped), 20)
