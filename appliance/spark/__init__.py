"""Spark, below everything that copies: it runs and calls functions, and knows neither lanes nor SQL.

``session`` and ``py4j_gateway`` import PySpark, and no other file of this folder.

- ``session``, ``spark_jvm``, ``submitted``, ``py4j_gateway``, ``tempdir``: Spark's driver.
- ``configuration``, ``passed_conf``: its settings; pure.
- ``host``: the release and the settings of a task's host.
- ``standalone``: a Spark cluster of one's own.
- ``pod``: an executor in a pod of Kubernetes.
"""
