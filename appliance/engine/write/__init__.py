"""Write buffered batches in committed transactions.

- ``lane``: a transactional id with its positions and copies.
- ``lane_runner``: a lane's transactions, one after the other.
- ``transformation``, ``trials``, ``dead_letters``: a lane's chunks in the SQL; the topics of failed records.
- ``lane_partitions``, ``copy_watch``: a lane's partitions, read, stopped or excluded; looks at its copies.
- ``admission``, ``copies``: admission of partitions, after a check of their copies' ends (invariants H and J).
"""
