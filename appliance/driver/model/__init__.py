"""Decisions of the driver; no IO.

- ``lane_balance``: partitions over lanes by their load, and lanes over tasks.
- ``round_robin``: round-robin over names.
"""
