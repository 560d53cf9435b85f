"""Who reaches the chart's pods, and whom they reach; and how Prometheus finds them."""

import json

from tests.support.chart import DESTINATION, SOURCE, changed, only, refusal, rendered


def test_the_policy_admits_the_other_side_alone_on_the_tunnels_port() -> None:
    own = {
        "podSelector": {
            "matchLabels": {"app.kubernetes.io/name": "kafka-cloud-replicator", "app.kubernetes.io/instance": "link"}
        }
    }
    policy = only(rendered(changed(SOURCE, TUNNEL_PORT=15070)), "NetworkPolicy")["spec"]
    admitted = {"from": [{"ipBlock": {"cidr": "203.0.113.7/32"}}, own], "ports": [{"protocol": "TCP", "port": 15070}]}
    assert policy["ingress"] == [admitted]
    assert {"ports": [{"port": port, "protocol": "TCP"} for port in (9093, 9095)]} in policy["egress"]
    assert only(rendered(DESTINATION), "NetworkPolicy")["spec"].get("ingress") is None


def test_the_destination_reaches_its_brokers_and_the_other_side_and_nothing_else() -> None:
    values = changed(DESTINATION, DESTINATION_OAUTH_TOKEN_URL="https://login.example:8443/token")
    egress = only(rendered(values), "NetworkPolicy")["spec"]["egress"]
    ports = [{port["port"] for port in rule["ports"]} for rule in egress]
    assert ports == [{53, 5353}, {9094}, {15060}, {8443}]


def test_a_range_of_ports_of_a_pattern_is_open_to_the_source() -> None:
    values = changed(SOURCE, SOURCE_BROKER_PATTERN="*.orange.example:14001-14098")
    egress = only(rendered(values), "NetworkPolicy")["spec"]["egress"]
    assert {"port": 14001, "endPort": 14098, "protocol": "TCP"} in egress[1]["ports"]


def test_prometheus_finds_the_jobs_and_the_link_that_the_alerts_name() -> None:
    documents = rendered(DESTINATION, "--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true")
    service = only(documents, "Service", "-pages")
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    jobs = {}
    for endpoint in only(documents, "ServiceMonitor")["spec"]["endpoints"]:
        labels = {each["targetLabel"]: each["replacement"] for each in endpoint["relabelings"]}
        assert labels["link"] == "orange-grape"
        jobs[labels["job"]] = ports[endpoint["port"]]
    assert jobs == {"kafka-replicator": 8080, "kafka-tunnel": 8081}
    text = json.dumps(only(documents, "PrometheusRule"))
    assert "kubectl -n default exec deploy/link-kafka-cloud-replicator -c replicator -- appliance status" in text
    assert "helm -n default test link --logs" in text


def test_case_1391_the_doctor_of_the_source_side_may_dial_the_tunnels_port() -> None:
    """The policy kept its pod, which has the labels of the release, to the ports of DNS and of the brokers."""
    documents = rendered(changed(SOURCE, TUNNEL_PORT=15070))
    labels = only(documents, "Pod", "-doctor")["metadata"]["labels"]
    rules = only(documents, "NetworkPolicy")["spec"]["egress"]
    (dialled,) = (rule for rule in rules if {"protocol": "TCP", "port": 15070} in rule["ports"])
    assert dialled["to"][0]["podSelector"]["matchLabels"].items() <= labels.items()


def test_case_1392_the_dns_of_openshift_and_the_cache_of_a_node_are_admitted() -> None:
    """Names were asked for in kube-system alone: on OpenShift, or with a cache on each node, none had an address."""
    for values, upstream in ((SOURCE, []), (DESTINATION, [{"ipBlock": {"cidr": "10.96.0.10/32"}}])):
        pods, cache, *others = only(rendered(values), "NetworkPolicy")["spec"]["egress"][0]["to"]
        assert others == upstream
        (expression,) = pods["namespaceSelector"]["matchExpressions"]
        assert expression["values"] == ["kube-system", "openshift-dns"]
        assert cache == {"ipBlock": {"cidr": "169.254.20.10/32"}}


def test_case_1393_the_source_reaches_the_resolver_of_its_brokers() -> None:
    """DNS was open to the cluster's own alone, and TUNNEL_RESOLVER is another one."""
    values = changed(SOURCE, TUNNEL_RESOLVER="10.0.0.2:5300")
    ports = [{"protocol": protocol, "port": 5300} for protocol in ("UDP", "TCP")]
    assert {"ports": ports} in only(rendered(values), "NetworkPolicy")["spec"]["egress"]


def test_case_1394_a_pod_with_a_role_of_aws_reaches_what_logs_it_in_and_the_store_of_the_audit() -> None:
    """The policy kept the pod from them: no login by AWS_MSK_IAM with the role of a pod, and no audit in a store."""
    login = {"ports": [{"protocol": "TCP", "port": 443}]}
    for more in ({"DESTINATION_SASL_MECHANISM": "AWS_MSK_IAM"}, {"AUDIT_PATH": "s3a://audit/table"}):
        egress = only(rendered(changed(DESTINATION, **more)), "NetworkPolicy")["spec"]["egress"]
        assert login in egress
        networks = [peer["ipBlock"]["cidr"] for rule in egress[1:] for peer in rule.get("to", ())]
        assert networks == ["169.254.169.254/32", "169.254.170.23/32"]


def test_case_1397_a_link_that_the_values_do_not_name_is_not_called_a_hyphen() -> None:
    """With a whole setenv.sh in a Secret, the label `link` was "-": alerts took all such links for one."""
    values = {"side": "destination", "existingSecret": {"name": "mine"}, "dns": {"upstream": "10.96.0.10"}}
    assert "serviceMonitor.link: missing" in refusal({**values, "serviceMonitor": {"enabled": True}})
    named = rendered({**values, "serviceMonitor": {"enabled": True, "link": "orange-grape"}})
    for endpoint in only(named, "ServiceMonitor")["spec"]["endpoints"]:
        assert {"targetLabel": "link", "replacement": "orange-grape"} in endpoint["relabelings"]
