"""The rows of the long line's benchmark, from its trials, and the routes of the proxy."""

import pytest

from appliance.settings.target import Target
from bench.cases.wan import Workload, rows
from bench.lib.row import Row
from bench.lib.wan_proxy import Route


def test_rates_are_medians_beside_the_peers_and_beside_what_the_line_carries() -> None:
    rates = {
        "our replicator": [40, 42, 41],
        "MirrorMaker 2": [8, 9, 10],
        "MirrorMaker 2, tuned for it": [18, 19, 20],
    }
    assert rows(Workload(16, 48.5, rates)) == [
        Row("16 partitions by a long line", "MB/s", 41, "MirrorMaker 2", 9, goal=5),
        Row("16 partitions by a long line", "MB/s", 41, "MirrorMaker 2, tuned for it", 19),
        Row("16 partitions by a long line", "MB/s", 41, "the line", 48.5, goal=0.8),
    ]


def test_a_route_says_where_the_proxy_listens_and_where_that_leads() -> None:
    route = Route.parse("127.0.21.2:4000=127.0.21.1:4001")
    assert route == Route(Target("127.0.21.2", 4000), Target("127.0.21.1", 4001))
    assert Route.parse(str(route)) == route


@pytest.mark.parametrize("text", ["127.0.21.2:4000", "=127.0.21.1:4001", "127.0.21.2:4000="])
def test_half_a_route_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        Route.parse(text)
