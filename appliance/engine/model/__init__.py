"""Decisions and values of the engine; no IO.

- ``admission``: the facts of partitions, and the verdict on whether a lane copies them.
- ``chunk``: the batches of one transaction, and the sums of what was copied.
- ``held_back``: partitions that are not copied now, and the time of each one's next try.
- ``map_growth``: the maps of offsets after each transaction, and their obsolete segments.
- ``ranges``, ``trials``: ranges of records that pass SQL; what it is given first in a process.
- ``round_robin``: round-robin over names.
- ``transaction_size``: the limit of the next transaction, from the durations of the last ones.
"""
