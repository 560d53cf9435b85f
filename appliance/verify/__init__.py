"""The verification: both sides of every copied partition, read and compared.

- ``model``: results; no IO.
- ``command``, ``verification``: all partitions, and the parts that are known without reading.
- ``work``: partitions and parts of long ones, as values.
- ``checker``: some of them, verified by one process.
- ``fan_out``, ``spark_task``: all of them, verified by the tasks of Spark.
- ``spark``: the Spark that verifies, or evaluates the link's SQL, or both.
- ``collecting``, ``resume_file``: where long partitions are divided, how far they are, and what a killed run has kept.
- ``partition_sql``: the SQL that has copied a partition, and the records that have passed none.
- ``sql``: the source's records as the link's SQL has made them.
- ``sql_service``, ``sql_jobs``: the evaluation of it by Spark, in a process that verifies, and in the driver.
- ``sql_results``: the records on which that SQL fails, with their dead letters, and its changes during a verification.
- ``partition``, ``compacted``: one partition, every record of it or the newest of each key.
- ``global_order``: T-global of several clusters, and T.
"""
