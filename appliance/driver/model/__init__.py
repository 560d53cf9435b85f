"""Decisions of the driver; no IO.

- ``lane_balance``: partitions over lanes by their load, and lanes over tasks.
- ``balance_policy``, ``load_window``: when the running replicator places partitions by their load.
"""
