"""Decisions and values of the engine; no IO.

- ``admission``: the facts of partitions, the verdicts on them, and the time of each one's next try.
- ``chunk``: the batches of one transaction, the sums of what was copied, and the size of the next transaction.
- ``map_growth``: the maps of offsets after each transaction, and their obsolete segments.
- ``ranges``: ranges of records that pass SQL, and their trials in a process.
"""
