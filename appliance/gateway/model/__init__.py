"""Brokers, health and metrics of one end of the tunnel, as values; no IO.

- ``brokers``: the source cluster's brokers, held against the allow-list.
- ``health``: the answers of the health endpoint.
- ``metrics``: the counters of both ends as Prometheus metrics.
"""
