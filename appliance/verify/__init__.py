"""The verification: both sides of every copied partition, read and compared.

- ``model``: results; no IO.
- ``command``, ``verification``: all partitions, and the parts that are known without reading.
- ``work``, ``dividing``: partitions and parts of long ones, as values, and where those may be divided.
- ``checker``: some of them, verified by one process.
- ``fan_out``, ``spark_task``: all of them, verified by the tasks of Spark.
- ``spark``: the Spark that verifies, or evaluates the link's SQL, or both.
- ``collecting``, ``resume_file``: their results, how far they are, and what a killed run has kept.
- ``partition_sql``, ``brought_back``: the SQL that has copied a partition, and the records that have passed none.
- ``sql``: the source's records as the link's SQL has made them.
- ``sql_service``, ``sql_jobs``: the evaluation of it by Spark, in a process that verifies, and in the driver.
- ``failures``: the records on which that SQL fails, and their dead letters.
- ``sql_changes``: the changes of that SQL during a verification.
- ``partition``, ``compacted``: one partition, every record of it or the newest of each key.
"""
