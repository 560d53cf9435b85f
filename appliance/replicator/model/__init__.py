"""Decisions and values of the replicator that need no IO.

- ``chunk``: the batches of one transaction, and the sums of what was copied.
- ``held_back``: partitions that are not copied now, and the time of each one's next try.
- ``lane_balance``, ``lane_moves``, ``lanes_report``: partitions over lanes by load, what a change of lanes writes, and
  its outcome.
- ``map_growth``: the maps of offsets after each transaction, and their obsolete segments.
- ``position_change``, ``reset_report``: positions changed by the operator, and the outcome of a reset.
- ``problem_log``: open problems, each logged once.
- ``round_robin``: round-robin over names.
- ``transaction_size``: the limit of the next transaction, from the durations of the last ones.
- ``trials``: what the SQL is given first in a process, down to a record that ends processes.
"""
