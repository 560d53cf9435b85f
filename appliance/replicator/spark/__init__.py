"""Spark: the driver's session, the tasks' processes, and the control connection between them.

``session``, ``py4j_gateway`` and ``daemon`` alone import PySpark.

- ``session``, ``configuration``, ``spark_jvm``, ``py4j_gateway``, ``spark_error``, ``tempdir``: Spark's driver.
- ``daemon``, ``worker``: the tasks' processes, and one task.
- ``seats``, ``seating``, ``seat_door``, ``seat_sockets``, ``seat_tls``: the control connection.
- ``standalone``: a Spark cluster of one's own.
"""
