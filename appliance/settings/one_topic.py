"""One topic to one topic, by the four variables of kafka-reo: they alone make a link, without a tunnel and a file.

Each of the four stands for one of ours. The other variables that such a link needs get values here, unless the
environment has them; so TLS, a login or another number of tasks is one more variable.
"""

import hashlib
import re
from collections.abc import Mapping

from appliance.settings.clusters import ClusterSettings
from appliance.settings.parsers import listed
from appliance.settings.role import Side
from appliance.settings.target import Target
from appliance.settings.topics import topic_name
from appliance.settings.variable import REQUIRED, Variable, declared_within

_FROM, _TO = "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS", "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS"
_TOPIC, _COPY = "KAFKA_CLUSTERS_SOURCE_TOPIC", "KAFKA_CLUSTERS_DESTINATION_TOPIC"

ONE_TOPIC = {
    "SOURCE_BROKER_SERVERS": Variable(
        _FROM, "The source's bootstrap brokers: host:port.", listed(Target.parse), REQUIRED
    ),
    "REPLICA_TOPICS_SOURCE_REGEX": Variable(_TOPIC, "The topic to copy.", topic_name, REQUIRED),
    "DESTINATION_BROKER_SERVERS": Variable(
        _TO, "The destination's bootstrap brokers: host:port.", listed(Target.parse), REQUIRED
    ),
    "REPLICA_TOPICS_DEST_NAME": Variable(_COPY, "The name of its copy.", topic_name, REQUIRED),
}
"""The four variables, each by the name of ours for which it stands."""

ONE_TOPIC_NAMES = tuple(variable.name for variable in ONE_TOPIC.values())

_VALID = {_FROM: "source:9092", _TOPIC: "topic", _TO: "destination:9092", _COPY: "copy"}
"""Stand in for faulty values, so that all other faults are found too."""

_LOGIN = ("API_", "SASL_", "OAUTH_", "AWS_")
_TLS = ("CA_FILE", "SSL_")
"""Beginnings of variables that a login, or TLS, needs, behind SOURCE_ or DESTINATION_."""

_SHOWN_MAX = 40
"""Characters of a host or a topic in the short name of a cluster, at most."""


def with_one_topic(environment: Mapping[str, str]) -> tuple[Mapping[str, str], list[str]]:
    """The environment with ours in the place of the four variables, and the faults of the four.

    It is unchanged where none of them is set.
    """
    own = {name: text.strip() for name, text in environment.items() if text.strip()}
    if not any(name in own for name in ONE_TOPIC_NAMES):
        return environment, []
    texts: dict[str, str] = {}
    faults = []
    for ours, variable in ONE_TOPIC.items():
        texts[ours] = own.get(variable.name) or own.get(ours, "")
        if fault := _fault(variable, ours, own) or _fault_of_copy(ours, texts):
            faults.append(fault)
            texts[ours] = _VALID[variable.name]
    naming = own.get("REPLICA_TOPICS_NAMING", "exact")
    if naming.lower() != "exact":
        faults.append(f"REPLICA_TOPICS_NAMING={naming}: expected exact, or nothing, with {_COPY}")
    further = {name: text for name, text in _of_such_a_link(texts, own).items() if name not in own}
    return {**environment, **further, **texts}, faults


def _fault(variable: Variable[object], ours: str, own: Mapping[str, str]) -> str:
    text, other = own.get(variable.name, ""), own.get(ours, "")
    if not (text or other):
        return f"{variable.name}: missing: {variable.purpose}"
    if text and other not in ("", text):
        return f"{variable.name}={text}, {ours}={other}: expected one of them, not both"
    try:
        variable.parse(text or other)
    except ValueError as error:
        return f"{variable.name if text else ours}={text or other}: {error}"
    return ""


def _fault_of_copy(ours: str, texts: Mapping[str, str]) -> str:
    """The fault of a topic that would be copied onto itself; the copy's name is looked at last."""
    if ours != "REPLICA_TOPICS_DEST_NAME" or texts[ours] != texts["REPLICA_TOPICS_SOURCE_REGEX"]:
        return ""
    if _first(texts["SOURCE_BROKER_SERVERS"]) != _first(texts["DESTINATION_BROKER_SERVERS"]):
        return ""
    return f"{_COPY}={texts[ours]}: expected another topic than {_TOPIC} in the same cluster"


def _of_such_a_link(texts: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The other variables of a link of one topic; a topic that is named is copied whatever it is called."""
    topic, copy = texts["REPLICA_TOPICS_SOURCE_REGEX"], texts["REPLICA_TOPICS_DEST_NAME"]
    return {
        "SOURCE_CLUSTER_ID": cluster_name(texts["SOURCE_BROKER_SERVERS"], topic, copy),
        "SOURCE_ROUTE": "direct",
        "DESTINATION_CLUSTER_ID": cluster_name(texts["DESTINATION_BROKER_SERVERS"], copy, topic),
        "REPLICA_TOPICS_NAMING": "exact",
        "REPLICA_TOPICS_INTERNAL_REGEX": "(?!)",
        "TASKS": "2",
        **{f"{side.upper()}_SECURITY_PROTOCOL": protocol for side in Side if (protocol := _protocol(side, own))},
    }


def cluster_name(servers: str, topic: str, other: str) -> str:
    """The short name of a cluster in the link between its ``topic`` and the ``other`` cluster's.

    No two links have the same for their sources, so none takes the positions of another. Of two opposite links, each
    has the other's names, so that they are known for a circle. Only the first of the ``servers`` matters: others may
    come and go.
    """
    first = _first(servers)
    digest = hashlib.sha256(f"{first}/{topic}/{other}".encode()).hexdigest()[:12]
    return "-".join(filter(None, (_plain(first.rpartition(":")[0]), _plain(topic), digest)))


def _first(servers: str) -> str:
    return servers.partition(",")[0].strip().lower()


def _plain(text: str) -> str:
    """Letters, digits and hyphens: legal in a cluster's short name, which has no separator of a topic's name then."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text)[:_SHOWN_MAX].strip("-")


def _protocol(side: Side, own: Mapping[str, str]) -> str:
    """Plain text, or TLS where a file for it is given; empty with a login, for which the usual default is right.

    Only our own names count: Kubernetes sets SOURCE_API_PORT for a service ``source-api``.
    """
    names = {name for variable in declared_within(ClusterSettings, side) for name in variable.names}
    names_set = {name.removeprefix(f"{side.upper()}_") for name in names & own.keys()}
    if any(name.startswith(_LOGIN) for name in names_set):
        return ""
    return "SSL" if any(name.startswith(_TLS) for name in names_set) else "PLAINTEXT"
