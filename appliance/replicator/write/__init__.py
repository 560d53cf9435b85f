"""Write buffered batches in committed transactions.

- ``lane``: a transactional id with its positions and copies.
- ``lane_runner``: a lane's transactions, one after the other.
- ``lane_partitions``, ``copy_watch``: a lane's partitions, read, stopped or left out; looks at its copies.
- ``admission``, ``copies``: partitions taken in, their copies' ends checked first (invariants H and J).
"""
