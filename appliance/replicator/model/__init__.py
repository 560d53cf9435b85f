"""Decisions and values of the replicator that need no IO.

- ``chunk``: the batches of one transaction, and the sums of what was copied.
- ``held_back``: partitions that are not copied now, and when each is tried.
- ``map_growth``: the maps of offsets after each transaction, and their segments that say nothing any more.
- ``position_change``, ``reset_report``: positions changed by the operator's word, and the outcome of a reset.
- ``problem_log``: open problems, each told once.
- ``round_robin``: turns among many.
- ``transaction_size``: the limit of the next transaction, by how the last ones went.
"""
