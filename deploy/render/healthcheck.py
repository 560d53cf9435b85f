"""What Docker runs inside a container to learn whether it is well: Python, since the image has no curl.

Whether the process answers, whatever it answers: what its page says is mostly of faults elsewhere, on the other VM or
in a cluster, and a new container would not mend those.
"""

_ASK = (
    "import http.client; page = http.client.HTTPConnection('127.0.0.1', {port}, timeout=5); "
    "page.request('GET', '/health'); page.getresponse()"
)
_LEAVE_A_LOST_NETWORK = "import os; 'eth0' in os.listdir('/sys/class/net') or os.kill(1, 15); "


def probe(port: int) -> str:
    """Fails unless the container's ``/health`` answers."""
    return _ASK.format(port=port)


def probe_in_a_shared_network(port: int) -> str:
    """The same for a container in the network namespace of another, which it ends when that namespace is lost.

    When the other container starts again it gets a new namespace, and Docker leaves this one in the old, where only
    loopback is left. Its end makes Docker start it again, in the new one.
    """
    return _LEAVE_A_LOST_NETWORK + probe(port)
