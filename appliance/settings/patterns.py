"""Limits of SOURCE_BROKER_PATTERN: no domain that several owners share, and no port of another service.

A pattern allows names and ports that are not known yet. So it must include a port of a named broker, and its other
ports must be harmless: none below 1024, and none of another well-known service. If a broker uses such a port, name the
broker in SOURCE_BROKER_SERVERS; the port is then allowed in patterns too. Hosted Kafka fits: one port for all brokers
(9092 to 9098; 443 behind routes), or a range with one for each (14001 and on, 30000 and on).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from appliance.settings.target import AllowedTargets, TargetPattern

_PRIVILEGED = range(1024)

_REGION = r"[a-z]+(-[a-z]+)*-?[0-9]+"
_SHARED = re.compile(
    rf"""(c[0-9]+\.)?kafka\.{_REGION}\.amazonaws\.com(\.cn)?  # MSK; a cluster's: name.random.c2.kafka.region...
    | ({_REGION}\.)?vpce\.amazonaws\.com(\.cn)?  # endpoints of AWS; a service's: vpce-svc-random.region...
    | ((aws|azure|gcp)\.)?(glb\.)?confluent\.cloud  # a region's (us-east-1.aws...) is right above its brokers
    | (svc\.)?cluster\.local  # Kubernetes; a namespace's: kafka.svc.cluster.local
    """,
    re.VERBOSE,
)
"""Domains that the public suffix list lacks, though all customers of a hosted Kafka have names below them."""

_SERVICES = {
    2049: "NFS",
    2181: "ZooKeeper",
    2375: "Docker",
    2376: "Docker",
    2379: "etcd",
    2380: "etcd",
    3128: "proxies",
    3306: "MySQL",
    3389: "remote desktops",
    5432: "PostgreSQL",
    5671: "AMQP",
    5672: "AMQP",
    5900: "remote desktops",
    5985: "Windows' remote management",
    5986: "Windows' remote management",
    6379: "Redis",
    6443: "Kubernetes",
    8080: "HTTP",
    8081: "schema registries",
    8083: "Kafka Connect",
    8200: "Vault",
    8443: "HTTPS",
    8500: "Consul",
    9000: "HTTP",
    9042: "Cassandra",
    9090: "Prometheus",
    9100: "node exporters",
    9200: "Elasticsearch",
    9300: "Elasticsearch",
    10250: "Kubernetes' kubelet",
    11211: "Memcached",
    15672: "RabbitMQ",
    26257: "CockroachDB",
    27017: "MongoDB",
}
"""Ports from 1024 on of well-known services that are no brokers and often need no password."""


def pattern_faults(allowed: AllowedTargets) -> list[str]:
    """Every fault of the patterns, held against the brokers that are named."""
    ports = {target.port for target in allowed.exact}
    servers = f"{allowed.prefix}_BROKER_SERVERS"
    return [
        f"{allowed.prefix}_BROKER_PATTERN={pattern}: {fault}"
        for pattern in allowed.patterns
        for fault in (*_domain_faults(pattern), *_port_faults(pattern, ports, servers))
    ]


def _domain_faults(pattern: TargetPattern) -> Iterator[str]:
    if _is_shared(pattern.domain):
        yield (
            f"names below {pattern.domain} belong to many owners, by the public suffix list or to our knowledge: "
            "expected the domain of the brokers alone"
        )


def _port_faults(pattern: TargetPattern, brokers: set[int], servers: str) -> Iterator[str]:
    if brokers.isdisjoint(pattern.ports):
        ports = ", ".join(map(str, sorted(brokers)))
        yield f"expected ports with one of {servers} ({ports}): name a broker there, or correct the ports"
        return
    for port in pattern.ports:
        if port not in brokers and (service := _other_service(port)):
            yield (
                f"port {port} is known for {service}: leave it out (two patterns, comma separated), or name the "
                f"broker that has it in {servers}"
            )
            return


def _other_service(port: int) -> str | None:
    return "system services" if port in _PRIVILEGED else _SERVICES.get(port)


def _is_shared(domain: str) -> bool:
    """True if anybody can have a name below ``domain``, or below a domain below it.

    By the public suffix list (publicsuffix.org), as its package brought it, and by ours.
    """
    if _SHARED.fullmatch(domain):
        return True
    import publicsuffixlist  # reads some 10,000 lines, and most links have no pattern

    public = publicsuffixlist.PublicSuffixList()
    if public.publicsuffix(domain) == domain:
        return True
    lines = Path(publicsuffixlist.PSLFILE).read_text("utf-8").splitlines()
    return any(line.endswith(f".{domain}") and not line.startswith(("//", "!")) for line in lines)
