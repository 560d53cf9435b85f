"""The pages of the process of an order."""

import json
from dataclasses import replace

import pytest

from appliance.clock import now_ms
from appliance.commands.order.pages import OrderPages
from appliance.order.model.view import OrderView
from tests.support.order_facts import HOME, order_view, view


def pages(shown: OrderView, age: int = 0) -> OrderPages:
    at = now_ms() - age
    return OrderPages(replace(shown, at=at, clusters=tuple(replace(each, heard=at) for each in shown.clusters)))


async def test_an_order_that_is_well_is_healthy() -> None:
    page = await pages(order_view()).page("/health")
    assert (page.status, json.loads(page.body)["state"]) == (200, "ordered")


async def test_an_order_that_needs_an_operator_is_not_healthy_and_says_why() -> None:
    page = await pages(view(orange=HOME, grape="the tunnel is cut", lemon=HOME)).page("/health")
    assert page.status == 503
    assert [each["reason"] for each in json.loads(page.body)["problems"]] == ["unknown now: the tunnel is cut"]
    assert (await pages(view(orange=HOME, grape="the tunnel is cut", lemon=HOME)).page("/status")).status == 200


@pytest.mark.parametrize("made", [OrderPages(), pages(order_view(), age=31_000)], ids=["no look", "an old look"])
@pytest.mark.parametrize("path", ["/health", "/status"])
async def test_nothing_is_said_of_an_order_that_was_not_looked_at_lately(made: OrderPages, path: str) -> None:
    page = await made.page(path)
    assert (page.status, json.loads(page.body)["state"]) == (503, "unknown")


async def test_a_page_for_a_browser_says_what_the_status_does() -> None:
    page = await pages(order_view()).page("/")
    assert (page.status, page.content_type) == (200, "text/html; charset=utf-8")
    text = page.body.decode()
    assert all(word in text for word in ("home is orange", "grape", "lemon", "lacks"))
    assert "no new look" not in text
    assert "no new look" in (await pages(order_view(), age=31_000).page("/")).body.decode()


async def test_an_old_look_has_no_metrics_but_its_time() -> None:
    assert b"kafka_order_records" in (await pages(order_view()).page("/metrics")).body
    old = (await pages(order_view(), age=31_000).page("/metrics")).body
    assert b"kafka_order_records" not in old
    assert b"kafka_order_snapshot_timestamp_seconds" in old
