"""Brokers, health, metrics and status of one end of the tunnel, as values; no IO.

- ``brokers``: the source cluster's brokers, held against the allow-list.
- ``health``: the answers of the health endpoint.
- ``metrics``: the counters of both ends as Prometheus metrics.
- ``document``: the status of one end, and of both, as JSON.
- ``far_view``: the newest status of the far end, and why there is none newer.
"""
