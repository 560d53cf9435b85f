"""The settings of a try of an order on one machine, which kdsync's arguments describe."""

import pytest

from appliance.commands.order.run import _tried, order_of
from appliance.errors import SettingsError


def test_the_arguments_of_kdsync_make_an_order_of_that_topic_alone() -> None:
    tried = list(_tried("2", "one:9092,one:9093;two:9092", "a.b"))
    assert [each.cluster for each in tried] == ["cluster-1", "cluster-2"]
    assert {str(each.own.settings.bootstrap[0]) for each in tried} == {"one:9092", "two:9092"}
    orders = [order_of(each) for each in tried]
    assert orders[0].clusters == orders[1].clusters == ("cluster-1", "cluster-2")
    assert {(order.home, order.lanes) for order in orders} == {("cluster-1", 1)}
    naming = orders[0].naming
    assert [naming.copies(topic, internal=False) for topic in ("a.b", "axb")] == [True, False]


@pytest.mark.parametrize("instances", ["1", "3", "two"])
def test_another_number_of_instances_than_clusters_is_refused(instances: str) -> None:
    with pytest.raises(SettingsError, match="expected the brokers of so many clusters"):
        list(_tried(instances, "one:9092;two:9092", "orders"))
