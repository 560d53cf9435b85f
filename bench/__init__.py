"""Benchmarks: the appliance beside real peers, on this machine.

- ``cases``: the benchmarks, one file each.
- ``lib``: clusters, loads, contenders and instruments.
"""
