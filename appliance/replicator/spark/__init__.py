"""Spark: the driver's session, the tasks' processes, and the control connection between them.

``session``, ``transform_plan``, ``py4j_gateway``, ``daemon`` and ``query_listener`` alone import PySpark.

- ``session``, ``spark_error``, ``spark_jvm``, ``submitted``, ``py4j_gateway``, ``tempdir``: Spark's driver.
- ``configuration``, ``passed_conf``: its settings; pure.
- ``transform_plan``, ``transform_jobs``, ``transform_ends``: the jobs of SQL in flight, and their way to the lanes.
- ``transform_listener``, ``transform_addresses``, ``address_messages``: that way between hosts.
- ``daemon``, ``host``, ``worker``, ``task_runner``, ``task_reports``: the tasks' processes, their host, one task, its lanes, its reports.
- ``assignment``: the messages of driver and tasks; pure.
- ``control_server``, ``control_listener``, ``control_client``, ``control_connection``: their transport.
- ``query_listener``: the listener of the progress.
- ``local_spark``: a Spark of a command's own.
- ``standalone``: a Spark cluster of one's own.
"""
