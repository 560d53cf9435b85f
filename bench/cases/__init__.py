"""The benchmarks, each with its options and its rows.

- ``replicate``, ``topics``, ``wan``: copies of one topic, of many topics, over a long line.
- ``lanes``: lanes over executors with a skewed load, and the driver's cost of many partitions.
- ``offsets``: the exactness of groups' offsets.
- ``latency``, ``recovery``: times: of a record, and after a kill or a stop.
- ``transform``: SQL in flight: its rate, its cost and its latency.
- ``order``: a total order of three clusters: its latency and its rate.
- ``verify``: a verification by one process, and by Spark.
- ``tunnel``: the tunnel.
"""
