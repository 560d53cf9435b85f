"""What operators see of an order in three real clusters: status, origins, verification, pages, and the doctor."""

import asyncio
import json
import sys
import urllib.request
from typing import Any

import pytest

from appliance.settings.env_file import read_order
from appliance.settings.role import Role
from tests.support.administration import configure
from tests.support.order_clusters import Ordered, settled
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def told(three: Ordered, own: str, *words: str, **changed: str) -> tuple[int, Any]:
    """The exit code of a command beside a cluster, and its JSON."""
    line = [sys.executable, "-m", "appliance.cli", *words, "--json", "--env-file", str(three.settings(own, **changed))]
    process = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return process.returncode or 0, json.loads(output)


async def page(three: Ordered, own: str, path: str) -> str:
    """A page of the process beside a cluster."""
    address = read_order(three.settings(own), Role.REPLICATOR, {}).console.listen
    answer = await asyncio.to_thread(urllib.request.urlopen, f"http://{address}{path}", timeout=PATIENCE)
    with answer:
        return str(answer.read().decode())


def direct(three: Ordered) -> dict[str, str]:
    """Settings without tunnels."""
    brokers = {
        f"{name.upper()}_BROKER_SERVERS": ",".join(map(str, cluster.home_targets)).replace("127.0.0.1", "localhost")
        for name, cluster in three.clusters.items()
    }
    return {"GLOBAL_ROUTE": "direct", "GLOBAL_CLUSTERS": ",".join(three.clusters), "SHARED_SECRET": "", **brokers}


async def steps(three: Ordered, **changed: str) -> dict[str, Any]:
    """The verdicts of the doctor beside grape, by step."""
    _, report = await told(three, "grape", "doctor", "order", **changed)
    return {each["step"]: each for each in report["steps"]}


async def test_an_order_in_three_clusters_is_shown_traced_and_verified(three: Ordered) -> None:
    three.make_topic("orders-seen", 2)
    async with three.processes(), three.followed("orders-seen", 2) as chains:
        with three.written("orders-seen", 2, seed=5):
            await asyncio.sleep(3)
        await settled(chains, *three.clusters)
        code, shown = await told(three, "grape", "order", "status")
        assert (code, shown["problems"]) == (0, [])
        (home,) = {lane["epoch"]["home"] for lane in shown["lanes"]}  # an earlier test may have moved it
        seen = [each for each in shown["partitions"] if each["topic"] == "orders-seen"]
        assert [[part["lacks"] for part in each["parts"]] for each in seen] == [[0, 0, 0]] * 2
        health, metrics = await page(three, "grape", "/health"), await page(three, "grape", "/metrics")
        assert json.loads(health)["problems"] == []
        assert f'kafka_order_home{{home="{home}",lane="0"}} 1.0' in metrics
        assert 'kafka_order_home_silent{lane="0"} 0.0' in metrics
        code, report = await told(three, "lemon", "verify", "--global", "--topic", "orders-seen")
        assert (code, report["equal"]) == (0, True)
        of = [each for each in report["partitions"] if each["topic"].endswith(":orders-seen")]
        assert sum(each["records"] for each in of) == sum(each["length"] for each in seen)
        code, (line,) = await told(three, "grape", "order", "origin", "orders-seen", "0", "0")
        assert (code, line["to_topic"], line["state"]) == (0, "orders-seen", "exact")
        back = "orders-seen", "0", str(line["to_offset"]), "--from", line["to_cluster"]
        code, lines = await told(three, "lemon", "order", "origin", *back)
        assert (code, {each["to_cluster"]: each["to_offset"] for each in lines}["grape"]) == (0, 0)
        other = next(name for name in three.clusters if name != home)
        three.lines[other, home].cut()
        try:
            code, shown = await told(three, other, "order", "status")
        finally:
            three.lines[other, home].heal()
    assert (code, shown["state"]) == (1, "unknown")
    assert {part["lacks"] for each in shown["partitions"] for part in each["parts"]} == {None}


async def test_the_doctor_of_an_order_tries_the_way_to_each_cluster(three: Ordered) -> None:
    three.make_topic("orders-doctor", 1)
    found = await steps(three, **direct(three))
    assert [each for each in found.values() if each["verdict"] in ("failed", "not reached")] == []
    assert {name.partition(":")[0] for name in found} == {"settings", "lanes", *three.clusters}
    assert found["grape: write access"]["verdict"] == "passed"
    through = await steps(three)
    broken = {name for name, each in through.items() if each["verdict"] == "failed"}
    assert broken == {"orange: tunnel port", "lemon: tunnel port"}
    assert "GLOBAL_CLUSTERS" in through["orange: tunnel port"]["change"]
    assert through["orange: read access"]["verdict"] == "not reached"
    assert through["grape: read access"]["verdict"] == "passed"


async def test_the_doctor_of_an_order_finds_what_would_break_it(three: Ordered) -> None:
    three.make_topic("orders-broken", 1)
    three.make_topic("orders-broken-global", 1)
    configure(three.clusters["lemon"], "orders-broken-global", **{"cleanup.policy": "compact"})
    configure(three.clusters["orange"], "orders-broken", **{"cleanup.policy": "compact"})
    found = await steps(three, **direct(three), LANES="7")
    assert found["lemon: topics' safety"]["verdict"] == "failed"
    assert "orders-broken-global" in found["lemon: topics' safety"]["detail"]
    assert found["orange: read access"]["detail"].endswith("is ordered: orders-broken")
