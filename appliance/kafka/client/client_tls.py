"""TLS to the brokers of one cluster: the authorities that we trust, and the certificate that we show."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.errors import SettingsError
from appliance.settings.login_checks import certificate_faults
from appliance.settings.pem_files import Signature, certificates, read_pem, signature_of
from appliance.settings.values import ClusterSettings

if TYPE_CHECKING:
    from cryptography import x509

log = logging.getLogger("appliance.kafka")


class ClientTls:
    """The TLS context of new connections, made again when one of its files has changed."""

    def __init__(self, cluster: ClusterSettings) -> None:
        self._cluster = cluster
        self._context: ssl.SSLContext | None = None
        self._seen: Signature = ()

    def context(self) -> ssl.SSLContext | None:
        """The context of a new connection; None without TLS. New files that cannot be used yet change nothing."""
        if not self._cluster.protocol.encrypted:
            return None
        signature = signature_of(tuple(_files(self._cluster)))
        if self._context is None or signature != self._seen:
            try:
                self._context = _context(self._cluster)
            except SettingsError as error:
                if self._context is None:
                    raise
                log.warning("new certificate files not taken yet", extra={"fields": {"cause": str(error)}})
            self._seen = signature
        return self._context


def _files(cluster: ClusterSettings) -> Iterator[Path]:
    """The files from which the cluster's TLS context is made."""
    if cluster.ca_file:
        yield cluster.ca_file
    if cluster.certificate:
        yield from (cluster.certificate.file, cluster.certificate.key)


def _context(cluster: ClusterSettings) -> ssl.SSLContext:
    """A TLS context that checks the cluster's certificates, and shows ours."""
    own = cluster.certificate
    if own and (faults := list(certificate_faults(cluster, own))):
        raise SettingsError(faults)
    context = trusting(cluster.variable("CA_FILE"), cluster.ca_file)
    try:
        if own:
            context.load_cert_chain(own.file, own.key, own.password.reveal)  # always a password, or OpenSSL would ask
    except (OSError, ssl.SSLError) as error:
        variable = cluster.variable("SSL_CERTIFICATE_FILE")
        raise SettingsError([f"{variable}={own.file if own else ''}: not fit for TLS: {error}"]) from error
    return context


def trusting(variable: str, authorities: Path | None) -> ssl.SSLContext:
    """A TLS context that trusts the authorities in a file, or the system's."""
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError([f"{variable}={authorities}: expected a PEM file of certificates: {error}"]) from error


def certificate_remedy(cluster: ClusterSettings) -> str:
    """The settings to look at when a broker does not accept our certificate, or wants one."""
    file = cluster.variable("SSL_CERTIFICATE_FILE")
    if cluster.certificate is None:
        return f"set {file} and {cluster.variable('SSL_KEY_FILE')} if it asks for a certificate of ours"
    return f"check {file}={cluster.certificate.file}, and which authorities its listener trusts"


def own_certificate(cluster: ClusterSettings) -> x509.Certificate | None:
    """The certificate that logs us in; None without one."""
    own = cluster.certificate
    if own is None or not cluster.protocol.encrypted:
        return None
    try:
        return certificates(read_pem(own.file))[0]
    except ValueError as error:
        raise SettingsError([f"{cluster.variable('SSL_CERTIFICATE_FILE')}={own.file}: {error}"]) from error


def user_of(cluster: ClusterSettings) -> str:
    """The name of our login for brokers without rules of their own: the API key, or the certificate's subject."""
    certificate = None if cluster.protocol.authenticated else own_certificate(cluster)
    return certificate.subject.rfc4514_string() if certificate else cluster.api_key
