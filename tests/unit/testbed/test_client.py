"""The configuration of a client."""

from pathlib import Path

from appliance.settings.secret import Secret
from appliance.settings.target import Target
from testbed.plan import ApiKey, ClusterPlan
from testbed.properties import client_configuration

BOOTSTRAP = (Target("127.0.1.1", 19092), Target("127.0.1.2", 19092))


def test_a_secure_cluster_is_reached_with_its_authority_and_a_key():
    user = ApiKey("ORANGE1", Secret("one"))
    plan = ClusterPlan.secure("orange", size=2, first_address="127.0.1.1", api_keys=(user,))
    assert client_configuration(plan, BOOTSTRAP, Path("/cluster/ca.pem"), user) == {
        "bootstrap.servers": "127.0.1.1:19092,127.0.1.2:19092",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/cluster/ca.pem",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ORANGE1",
        "sasl.password": "one",
    }


def test_a_plain_cluster_is_reached_by_its_address_alone():
    plan = ClusterPlan.plain("bench", address="127.0.1.1")
    configuration = client_configuration(plan, BOOTSTRAP[:1], None, None)
    assert configuration == {"bootstrap.servers": "127.0.1.1:19092", "security.protocol": "PLAINTEXT"}
