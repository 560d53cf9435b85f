"""kafka-reo's form: one file with four variables, and ``kubectl apply``."""

import json
import re

import pytest

from testbed.kubernetes.node import Node
from tests.containers.programs.vpc import TOPICS
from tests.containers.sites import NEIGHBOURS, PLAIN_DESTINATION, PLAIN_SOURCE, Side
from tests.containers.test_direct import COPY, RECORDS
from tests.kubernetes.brokers import Brokers
from tests.kubernetes.release import CHECKOUT
from tests.support.image import IMAGE

FILE = CHECKOUT / "deploy" / "kubernetes" / "k8s-deployment.yml"
NAMESPACE = "one-topic"


@pytest.mark.release
@pytest.mark.asyncio(loop_scope="session")
async def test_one_file_with_four_variables_copies_a_topic(beside: Brokers) -> None:
    node, topic = beside.node, TOPICS[PLAIN_SOURCE.name]
    text = re.sub(r"(?<=image: ).*", f"{IMAGE}\n          imagePullPolicy: Never", FILE.read_text())
    node.kubectl("create", "namespace", NAMESPACE)
    try:
        async with beside.running(NEIGHBOURS.values()):
            for side in NEIGHBOURS.values():
                name_in_cluster(node, side)
            producer = await beside.produce(PLAIN_SOURCE, topic, "one-topic", RECORDS)
            assert await producer.wait(60) == 0
            node.kubectl("apply", f"--namespace={NAMESPACE}", "--filename", "-", given=text)
            assert await beside.wait_until_copied(PLAIN_SOURCE, topic, PLAIN_DESTINATION, COPY) == RECORDS
    finally:
        node.kubectl("delete", "namespace", NAMESPACE)


def name_in_cluster(node: Node, side: Side) -> None:
    """Give brokers outside of the cluster a name in the namespace, as a Service without a selector."""
    metadata = {"name": side.name, "namespace": NAMESPACE}
    ports = [{"name": "kafka", "port": side.bootstrap.port, "protocol": "TCP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"clusterIP": "None", "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata | {"labels": {"kubernetes.io/service-name": side.name}},
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{"addresses": list(side.names.values())}],
    }
    for document in (service, endpoints):
        node.kubectl("apply", "--filename", "-", given=json.dumps(document))
