"""The benchmarks, each with its options and its rows.

- ``replicate``, ``backlog``, ``topics``, ``wan``, ``spark``: copies of one topic, of gigabytes, of many topics,
  over a long line, with more tasks.
- ``lanes``: lanes over executors with a skewed load, and the driver's cost of many partitions.
- ``groups``, ``offsets``, ``maps``: the offsets of many groups, their exactness, and the bytes that it costs.
- ``latency``, ``recovery``, ``start``, ``failover``: times: of a record, after a kill, of a lane's start, of a
  promotion.
- ``console``: the control center, and what its viewers cost a copy.
- ``transform``: SQL in flight: its rate, its cost and its latency.
- ``verify``: a verification by one process, and by Spark.
- ``batches``, ``tunnel``: the batches' path without brokers, and the tunnel.
"""
