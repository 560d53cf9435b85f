"""Faults of one cluster's login: of what it combines, and of the files that it names."""

import ssl
from collections.abc import Iterator
from pathlib import Path

from appliance.settings.clusters import ClusterSettings, SaslMechanism
from appliance.settings.logins import ClientCertificate
from appliance.settings.pem_files import read_pair


def login_faults(cluster: ClusterSettings) -> Iterator[str]:
    """The faults between the values of one cluster's login."""
    if cluster.certificate and not cluster.protocol.encrypted:
        name, protocol = cluster.variable("SSL_CERTIFICATE_FILE"), cluster.variable("SECURITY_PROTOCOL")
        yield f"{name}={cluster.certificate.file}: expected {protocol} SSL or SASL_SSL with it, not {cluster.protocol}"
    if not cluster.protocol.authenticated:
        return
    mechanism = f"{cluster.variable('SASL_MECHANISM')}={cluster.mechanism}"
    oauth, url, command = cluster.oauth, cluster.variable("OAUTH_TOKEN_URL"), cluster.variable("OAUTH_TOKEN_COMMAND")
    if cluster.mechanism is SaslMechanism.OAUTHBEARER and bool(oauth.token_url) == bool(oauth.command):
        yield f"{mechanism}: expected either {url} or {command} with it"
    if cluster.mechanism is SaslMechanism.AWS_MSK_IAM:
        if not cluster.region:
            yield f"{mechanism}: expected {cluster.variable('AWS_REGION')} with it: no broker's name has a region"
        if bool(cluster.api_key) != bool(cluster.api_secret):
            both = f"{cluster.variable('API_KEY')} and {cluster.variable('API_SECRET')}"
            yield f"{mechanism}: expected both of {both}, or neither: then AWS's own search finds credentials"


def file_faults(cluster: ClusterSettings) -> Iterator[str]:
    """The faults of the files that the login reads."""
    if cluster.protocol.encrypted:
        yield from _authorities(cluster, "CA_FILE", cluster.ca_file)
        if cluster.certificate:
            yield from certificate_faults(cluster, cluster.certificate)
    if cluster.protocol.authenticated and cluster.oauth.token_url:
        yield from _authorities(cluster, "OAUTH_CA_FILE", cluster.oauth.ca_file)


def _authorities(cluster: ClusterSettings, name: str, file: Path | None) -> Iterator[str]:
    if file is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
    except ssl.SSLError:
        cause = "no certificate in it"
    except OSError as error:
        cause = error.strerror or "not readable"
    else:
        return
    yield f"{cluster.variable(name)}={file}: expected a readable PEM file: {cause}"


def certificate_faults(cluster: ClusterSettings, own: ClientCertificate) -> Iterator[str]:
    """The first fault of our certificate and its key that the brokers would refuse, or that only this host sees."""
    names = cluster.variable("SSL_CERTIFICATE_FILE"), cluster.variable("SSL_KEY_FILE")
    remedy = f", or with {cluster.variable('SSL_KEY_PASSWORD')}"
    try:
        read_pair((names[0], own.file), (names[1], own.key), own.password, remedy)
    except ValueError as error:
        yield str(error)
