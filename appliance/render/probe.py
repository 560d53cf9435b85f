"""What Docker runs inside a container to learn whether it is well: Python, since the image has no curl."""

_ASK = (
    "import http.client, os, sys; page = http.client.HTTPConnection('127.0.0.1', {port}, timeout=5); "
    "page.request('GET', '/health'); sys.exit(page.getresponse().status != 200)"
)
_LEAVE_A_LOST_NETWORK = "import os; 'eth0' in os.listdir('/sys/class/net') or os.kill(1, 15); "


def probe(port: int) -> str:
    """Fails unless the container's ``/health`` says that all is well."""
    return _ASK.format(port=port)


def probe_in_a_shared_network(port: int) -> str:
    """The same for a container in the network namespace of another, which it ends when that namespace is lost.

    When the other container starts again it gets a new namespace, and Docker leaves this one in the old, where only
    loopback is left. Its end makes Docker start it again, in the new one.
    """
    return _LEAVE_A_LOST_NETWORK + probe(port)
