"""Benchmarks: the appliance beside real peers, on this machine.

- ``cases``: the benchmarks, one file each.
- ``lib``: clusters, loads, contenders and instruments.

Each function raises ``ProcessFailed`` if a program ends or does not do its part in time, and ``ToolMissing`` if a
program is missing.
"""
