import pytest

from deploy.monitoring.promql import faults, metrics, restricted

SECONDS = "kafka_tunnel_dial_seconds"


@pytest.mark.parametrize(
    "expression",
    [
        "kafka_replicator_stopped > 0",
        'sum by (link, topic) (rate(kafka_replicator_records_copied_total{partition="0"}[5m]))',
        f"histogram_quantile(0.99, sum by (le, instance) (rate({SECONDS}_bucket[5m]))) / {SECONDS}_sum",
        'up{job="kafka-tunnel"} unless on (job, instance) kafka_replicator_source_reachable',
    ],
)
def test_an_expression_of_listed_metrics_with_their_labels_has_no_fault(expression: str) -> None:
    assert faults(expression) == []


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("kafka_replicator_lag_bytes", "no metric of the list: kafka_replicator_lag_bytes"),
        ("kafka_replicator_gaps", "no metric of the list: kafka_replicator_gaps"),
        (SECONDS, f"no metric of the list: {SECONDS}"),
        ("vector(1)", "no metric of the list: vector(1)"),
        ('kafka_tunnel_brokers{broker!=""}', "kafka_tunnel_brokers has no label broker"),
        ('kafka_tunnel_brokers{state="open", le="1"}', "kafka_tunnel_brokers has no label le"),
        ("sum by (topic) (kafka_tunnel_brokers)", "no metric here has the label topic"),
        ("kafka_tunnel_brokers and on (group) kafka_tunnel_broker", "no metric here has the label group"),
    ],
)
def test_a_metric_or_label_that_does_not_exist_is_named(expression: str, fault: str) -> None:
    assert faults(expression) == [fault]


@pytest.mark.parametrize(
    "expression",
    [
        "sum by (link) (kafka_replicator_stopped)",
        "sum without (topic) (kafka_replicator_stopped)",
        "kafka_replicator_groups",
    ],
)
def test_a_label_that_the_result_does_not_have_cannot_be_shown(expression: str) -> None:
    assert faults(expression, ["link"]) == []
    assert faults(expression, ["topic"]) == ["the result has no label topic"]


def test_a_set_operator_keeps_the_labels_of_its_left_side() -> None:
    ignored = "ignoring (state) kafka_tunnel_connections_open"
    assert faults(f"kafka_tunnel_brokers and {ignored}", ["state"]) == []
    assert faults(f"kafka_tunnel_brokers / {ignored}", ["state"]) == ["the result has no label state"]


def test_each_selector_is_restricted_whether_it_has_labels_or_not() -> None:
    expression = 'sum(rate(kafka_tunnel_bytes_total{direction="to_target"}[5m])) / sum(kafka_tunnel_connections_open)'
    assert restricted(expression, 'link="a"') == (
        'sum(rate(kafka_tunnel_bytes_total{direction="to_target", link="a"}[5m])) '
        '/ sum(kafka_tunnel_connections_open{link="a"})'
    )


def test_the_metrics_of_an_expression_are_those_of_the_list() -> None:
    assert metrics(f"rate({SECONDS}_bucket[5m]) * kafka_tunnel_brokers or up") == {SECONDS, "kafka_tunnel_brokers"}
