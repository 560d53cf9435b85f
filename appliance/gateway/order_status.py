"""Health, metrics and status of an order's gateway: those of the way to each other cluster, under its id."""

from collections.abc import Mapping

from appliance.clock import epoch_seconds
from appliance.gateway.model.far_view import Json
from appliance.gateway.model.health import Answer, order_health
from appliance.gateway.model.metrics import OrderCollector, exposition
from appliance.gateway.status import DestinationStatus
from appliance.timestamps import utc


class OrderStatus:
    """The pages of the gateway, with the ways by the ids of the clusters."""

    def __init__(self, ways: Mapping[str, DestinationStatus]) -> None:
        self._ways = ways

    async def health(self) -> Answer:
        """The answer of the health endpoint: the troubles of all ways."""
        return order_health({cluster: await way.health() for cluster, way in self._ways.items()})

    def metrics(self) -> bytes:
        """The text for Prometheus."""
        return exposition(OrderCollector({cluster: way.collectors() for cluster, way in self._ways.items()}))

    async def status(self) -> Json:
        """The document of both ends of each way."""
        return {"at": utc(epoch_seconds()), "clusters": {name: await way.status() for name, way in self._ways.items()}}
