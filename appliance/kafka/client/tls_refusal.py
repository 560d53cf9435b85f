"""What is wrong where a handshake of TLS fails, by OpenSSL's reason. Pure."""

import re
import ssl

from appliance.errors import CertificateRefused, PeerError, TlsRefused
from appliance.settings.target import Target

_ALERT = re.compile("(?:SSLV3|TLSV1|TLSV13)_(?:ALERT_)?(?!ROLLBACK)(.+)")
"""OpenSSL's name of an alert."""

_NO_TLS = re.compile("WRONG_VERSION_NUMBER|HTTPS?_(?:PROXY_)?REQUEST|RECORD_LAYER_FAILURE|(?:PACKET|DATA)_LENGTH_.*")
"""OpenSSL's names of bytes that are no TLS."""

_OF_A_NAME = "ILLEGAL_PARAMETER"
"""The alert that Java sends for a host name that it does not take."""

_UNDERSCORE = ": Java takes no host name with an underscore in TLS, so name the brokers without one"
_NO_TRUST = ("UNKNOWN_CA", "ACCESS_DENIED")


def refusal(target: Target, error: ssl.SSLError) -> PeerError | CertificateRefused:
    """The error of a handshake that fails: an alert of TLS (RFC 8446, section 6.2), or bytes that are no TLS.

    With TLS 1.3 an alert about our certificate comes when the handshake has ended for us, in place of an answer.
    """
    alert = _ALERT.fullmatch(error.reason or "")
    if alert is None and _NO_TLS.fullmatch(error.reason or ""):
        return PeerError(f"{target} does not speak TLS on this port: {error.reason}")
    if alert is None:
        return TlsRefused(f"{target} speaks TLS that is not accepted here: {error.reason}")
    description = alert[1].lower().replace("_", " ")
    if "CERTIFICATE" in alert[1] or alert[1] in _NO_TRUST:
        return CertificateRefused(f"{target} does not accept our certificate, or that we show none ({description})")
    cause = _UNDERSCORE if "_" in target.host and alert[1] == _OF_A_NAME else ""
    return TlsRefused(f"{target} speaks TLS, and ends the handshake with the alert {description}{cause}")
