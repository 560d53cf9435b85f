"""SQL in flight: the records of a task's lanes on their way through a Spark job and back.

The lane's process keeps all that exactly once needs. The SQL is a function of records: a job that dies, or dies twice,
is run again, and what it has not confirmed was not done. ``docs/run/transform.md`` has the picture.

- ``rounds``: what each job gets of the ranges that lanes ask for, and what has become of it; pure.
- ``messages``: the messages between the lane's process, the two ends of the job, and the driver; pure.
- ``service``: the lane's process: hands out ranges, takes their outcomes, finds the record that fails.
- ``row_writer``, ``row_reader``: records as Arrow's rows, and back, range by range.
- ``ends``, ``connection``: the two ends of the job, in Spark's Python workers; messages over connections.
"""
