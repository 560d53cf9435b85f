"""The connections through which the driver calls Java: their listener exists only until they are open.

py4j gives every connection a Java thread, without a timeout for the secret: some hundreds of strangers would leave
Spark no threads. So the driver opens all connections that it ever needs at once, and makes Java close the listener and
every connection that is not ours.
"""

import os
import threading
from queue import SimpleQueue
from typing import Any

from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import launch_gateway

_CONNECTIONS = 8
"""Connections, one a thread: a job's, one that looks for room, one that kills the job, and one that forgets."""


def closed_gateway(port: int, secret: str, jobs: int = 0) -> JavaGateway:
    """PySpark's gateway, connected to Java and closed to everybody else from now on.

    ``jobs`` run beside the one that copies, each in a thread of its own. Py4JError or OSError if Java does not answer.
    """
    # As in Java's own environment: threads share connections; none owns one.
    os.environ["PYSPARK_PIN_THREAD"] = "false"
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    gateway: JavaGateway = launch_gateway()  # type: ignore[no-untyped-call]
    client = gateway._gateway_client
    connections = [client._get_connection() for _ in range(_CONNECTIONS + jobs)]
    ours = {connection.socket.getsockname()[1] for connection in connections}
    client.deque.extend(connections)
    _forget_apart(client)
    server = gateway.java_gateway_server
    _private(server, "sSocket").close()
    for connection in gateway.jvm.java.util.ArrayList(_private(server, "connections")):
        if connection.getSocket().getPort() not in ours:
            connection.getSocket().close()
    return gateway


def _forget_apart(client: Any) -> None:
    """Let a thread report the objects that Python forgets to Java.

    py4j would do so in the thread that collects garbage: the event loop would hang when Java hangs.
    """
    forgotten: SimpleQueue[str] = SimpleQueue()
    tell = client.garbage_collect_object
    client.garbage_collect_object = forgotten.put

    def forget() -> None:
        while True:
            tell(forgotten.get())

    threading.Thread(target=forget, name="forgetting", daemon=True).start()


def _private(server: Any, name: str) -> Any:
    """A field of ``py4j.GatewayServer``, which has no method that closes only its listener."""
    field = server.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(server)
