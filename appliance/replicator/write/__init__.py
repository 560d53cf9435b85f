"""From buffered batches to committed transactions.

- ``lane``: a transactional id with its positions and copies.
- ``lane_runner``: a lane's transactions, one after the other.
- ``admission``, ``copies``: partitions taken in, their copies' ends checked first (invariants H and J).
"""
