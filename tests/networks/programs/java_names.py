"""``python -m tests.networks.programs.java_names NAME...``: the addresses that Java's own resolver finds, as JSON.

A JVM without a compiler cannot run our source, but takes calls from Python by Py4J.
"""

import json
import sys

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError


def addresses(gateway: JavaGateway, name: str) -> list[str]:
    """The addresses from java.net.InetAddress; none for an unknown name."""
    try:
        return sorted(found.getHostAddress() for found in gateway.jvm.java.net.InetAddress.getAllByName(name))
    except Py4JJavaError as error:
        if "UnknownHostException" in str(error.java_exception):
            return []
        raise


if __name__ == "__main__":
    gateway = JavaGateway.launch_gateway(die_on_exit=True)
    print(json.dumps([addresses(gateway, name) for name in sys.argv[1:]]))
    gateway.shutdown()
