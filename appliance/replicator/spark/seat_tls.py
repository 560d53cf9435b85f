"""TLS 1.3 between a Spark cluster's tasks and the driver: both ends' certificates come from the run's token.

The token reaches the tasks through Spark, which encrypts its own connections, and never crosses this one.
"""

import functools
import hashlib
import ssl

from appliance.settings.values import Side
from appliance.tls.certificates import make_credentials
from appliance.tls.identity import tls_context


def _key(token: str) -> bytes:
    """Fast, because a token is drawn at random: nobody guesses it."""
    return hashlib.sha256(token.encode()).digest()


@functools.cache
def seat_tls(token: str, side: Side) -> ssl.SSLContext:
    """One end's: the driver's is the source, since that is the end that listens."""
    protocol = ssl.PROTOCOL_TLS_SERVER if side is Side.SOURCE else ssl.PROTOCOL_TLS_CLIENT
    context = tls_context(make_credentials(_key(token), "seats", side), protocol)
    # As cheap as X25519, and every Python can name it alone: a stranger's hello cannot ask for a dear one (identity).
    context.set_ecdh_curve("prime256v1")
    return context
