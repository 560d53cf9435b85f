"""A real Prometheus scrapes the pages of a link with the committed configuration, and answers the dashboard."""

import asyncio
import contextlib
import json
import re
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import yaml

from appliance.gateway.model.metrics import DestinationCollector
from appliance.gateway.model.metrics import exposition as tunnel_exposition
from appliance.order.model.metrics import OrderCollector
from appliance.order.model.metrics import exposition as order_exposition
from appliance.runtime.http import HttpServer, Page
from appliance.settings.target import Target
from appliance.settings.values import Side
from appliance.status.model.metrics import exposition
from appliance.tunnel.limits.counters import Counters
from bench.lib.running import LOOPBACK, free_port
from deploy.monitoring.__main__ import FOLDER
from deploy.monitoring.alerts import ALERTS, ORDER_JOB, REPLICATOR_JOB, TUNNEL_JOB
from testbed.process import OwnedProcess
from tests.support.exposition import NUMBERS, source_vms, tunnel_collector
from tests.support.facts import complete
from tests.support.order_facts import order_view
from tests.support.patience import PATIENCE

CHOICES = {"$link": ".*", "$instance": ".*", "$__rate_interval": "1m"}
"""The values of Grafana's variables."""

LINK, ORDER = "orange-grape", "order"

EXPECTED = {
    "KafkaReplicatorPartitionStopped",
    "KafkaReplicatorTopicStopped",
    "KafkaTunnelBrokerNotOpen",
    "KafkaTunnelPreviousSecret",
}
"""The alerts of the served pages."""

pytestmark = pytest.mark.asyncio(loop_scope="module")
"""The pages are served by the same loop."""


def pages() -> dict[str, list[bytes]]:
    """The pages of each job."""
    counters = Counters(servers=source_vms())
    counters.handshakes.observe(0.2)
    return {
        REPLICATOR_JOB: [exposition(complete(), fresh=True)],
        TUNNEL_JOB: [
            tunnel_exposition(tunnel_collector(counters, Side.DESTINATION), DestinationCollector(NUMBERS)),
            tunnel_exposition(tunnel_collector(counters, Side.SOURCE)),
        ],
        ORDER_JOB: [order_exposition(OrderCollector(order_view(), {0: False}, fresh=True))],
    }


@contextlib.asynccontextmanager
async def served(body: bytes) -> AsyncIterator[Target]:
    async def page(path: str) -> Page:
        return Page(200 if path == "/metrics" else 404, "text/plain; version=0.0.4", body)

    server = HttpServer(page)
    try:
        yield await server.start("CONSOLE_LISTEN", Target(LOOPBACK, 0))
    finally:
        await server.close()


class Prometheus:
    """The HTTP API of a running Prometheus."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer; an error of ours in an expression raises."""
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=PATIENCE).read())
        answer = json.loads(text)
        assert answer["status"] == "success", answer
        return answer["data"]

    async def result(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        found: list[dict[str, Any]] = (await self.get("query", query=expression))["result"]
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prometheus(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    configuration = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    configuration["rule_files"] = [str(FOLDER / name) for name in configuration["rule_files"]]
    async with contextlib.AsyncExitStack() as stack:
        for job in configuration["scrape_configs"]:
            bodies = pages()[job["job_name"]]
            job["static_configs"][0]["targets"] = [
                str(await stack.enter_async_context(served(body))) for body in bodies
            ]
        file = directory / "prometheus.yml"
        file.write_text(yaml.safe_dump(configuration))
        address = f"{LOOPBACK}:{free_port()}"
        command = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={directory / 'data'}"]
        process = await OwnedProcess.start(
            "prometheus", [*command, f"--web.listen-address={address}"], directory / "prometheus.log"
        )
        stack.push_async_callback(process.kill)
        api = Prometheus(address)

        async def knows_the_link() -> bool:
            with contextlib.suppress(OSError):
                scraped = await api.result("count_over_time(up[1m]) >= 3")
                evaluated = await api.result(f'count by (alertname) (ALERTS{{alertname=~"{"|".join(EXPECTED)}"}})')
                return len(scraped) == 4 and len(evaluated) == len(EXPECTED)
            return False

        await process.wait_until(knows_the_link, PATIENCE, f"scrape four targets, and find {', '.join(EXPECTED)}")
        yield api


def chosen(expression: str) -> str:
    for name, value in CHOICES.items():
        expression = expression.replace(name, value)
    return expression


@pytest.fixture
def dashboard() -> Any:
    return json.loads((FOLDER / "grafana-dashboard.json").read_text())


async def test_every_query_of_the_dashboard_has_an_answer_for_the_link(prometheus: Prometheus, dashboard: Any) -> None:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            found = await prometheus.result(chosen(target["expr"]))
            assert found, (panel["title"], target["expr"])
            expected = ORDER if "kafka_order" in target["expr"] else LINK
            assert {series["metric"]["link"] for series in found} == {expected}


async def test_every_label_of_a_legend_is_in_the_answer(prometheus: Prometheus, dashboard: Any) -> None:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            (first, *_) = await prometheus.result(chosen(target["expr"]))
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= first["metric"].keys(), panel["title"]


async def test_the_variables_of_the_dashboard_find_the_link_and_its_pages(
    prometheus: Prometheus, dashboard: Any
) -> None:
    queries = {each["name"]: each["definition"] for each in dashboard["templating"]["list"] if "definition" in each}
    found = {}
    for name, query in queries.items():
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()  # type: ignore[union-attr]
        found[name] = await prometheus.get(f"label/{label}/values", **{"match[]": chosen(selector)})
    assert found["link"] == [LINK, ORDER]
    assert len(found["instance"]) == 4


async def test_prometheus_evaluates_every_alert_and_the_faults_of_the_link_fire(prometheus: Prometheus) -> None:
    rules = [rule for group in (await prometheus.get("rules"))["groups"] for rule in group["rules"]]
    assert {rule["name"]: rule["health"] for rule in rules} == {alert.name: "ok" for alert in ALERTS}
    assert {rule["name"] for rule in rules if rule["alerts"]} == EXPECTED
