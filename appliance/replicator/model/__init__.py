"""Decisions and values of the replicator that need no IO.

- ``chunk``, ``ledger``: the batches of one transaction, and the sums of what was copied.
- ``held_back``: partitions that cannot be copied now, and when each is tried again.
- ``problem_log``: open problems, each told once.
- ``round_robin``: turns among many.
"""
