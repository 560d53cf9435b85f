"""Benchmarks: what the appliance is measured against, on this machine, with real peers.

- ``cases``: the benchmarks, one file each.
- ``lib``: clusters, loads, contenders and instruments.
"""
