"""Decisions and values of the replicator that need no IO.

- ``chunk``, ``ledger``: the batches of one transaction, and the sums of what was copied.
- ``held_back``, ``failing``, ``trouble``: partitions and calls that cannot go on now, each told once.
- ``round_robin``: turns among many.
"""
