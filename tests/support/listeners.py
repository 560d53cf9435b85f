"""Plans of brokers whose listener VPC has another login than HOME, where the tests' own clients use PLAIN."""

from dataclasses import replace
from pathlib import Path

from testbed import jars
from testbed.plan import ClusterPlan
from tests.support.java_programs import compiled
from tests.support.oauth import AUDIENCE

_HANDLERS = "org.apache.kafka.common.security.oauthbearer"
_VPC = "listener.name.vpc"


def taking_msk_tokens(plan: ClusterPlan, directory: Path) -> ClusterPlan:
    """HOME takes, besides PLAIN, tokens of the form of MSK's; ``directory`` gets the class that judges them."""
    directory.mkdir()
    home, handler = "listener.name.home", "MskTokens"
    source = Path(__file__).parents[1] / "real" / "kafka" / "programs" / f"{handler}.java"
    properties = {
        f"{home}.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        f"{home}.oauthbearer.sasl.jaas.config": f"{_HANDLERS}.OAuthBearerLoginModule required;",
        f"{home}.oauthbearer.sasl.server.callback.handler.class": handler,
    }
    classes = compiled(source, jars.classpath(jars.broker_jars(plan.version)), directory)
    return with_properties(replace(plan, classes=(classes,)), properties)


def taking_tokens(plan: ClusterPlan, keys: Path, session_seconds: float) -> ClusterPlan:
    """The listener takes OAUTHBEARER's tokens alone, whose authority has these public keys, and limits its sessions."""
    mechanism = f"{_VPC}.oauthbearer"
    properties = {
        f"{_VPC}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{mechanism}.sasl.jaas.config": f"{_HANDLERS}.OAuthBearerLoginModule required;",
        f"{mechanism}.sasl.server.callback.handler.class": f"{_HANDLERS}.OAuthBearerValidatorCallbackHandler",
        f"{mechanism}.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        f"{mechanism}.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{mechanism}.connections.max.reauth.ms": f"{session_seconds * 1000:.0f}",
    }
    readable = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
    return with_properties(replace(plan, java_options=(readable,)), properties)


def asking_for_certificates(plan: ClusterPlan, authorities: Path) -> ClusterPlan:
    """The listener takes TLS alone, from clients whose certificate one of these authorities has signed."""
    properties = {
        "listener.security.protocol.map": "HOME:SASL_SSL,VPC:SSL,CONTROLLER:PLAINTEXT",
        f"{_VPC}.ssl.client.auth": "required",
        f"{_VPC}.ssl.truststore.type": "PEM",
        f"{_VPC}.ssl.truststore.location": str(authorities),
    }
    return with_properties(plan, properties)


def with_properties(plan: ClusterPlan, properties: dict[str, str]) -> ClusterPlan:
    """The plan with more properties of its brokers."""
    return replace(plan, properties=(*plan.properties, *properties.items()))
