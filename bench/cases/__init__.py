"""The benchmarks, each with its options and its rows.

- ``replicate``, ``backlog``, ``topics``, ``wan``, ``spark``: copying: one topic, gigabytes, many topics, a long line,
  more tasks.
- ``latency``, ``recovery``, ``start``: times: of a record, after a kill, of a lane's start.
- ``batches``, ``tunnel``: the batches' path without brokers, and the tunnel.
"""
