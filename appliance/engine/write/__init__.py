"""Write buffered batches in committed transactions.

- ``ownership``, ``lane``: a lane's transactional id, epoch and owner; its copies and positions in transactions.
- ``lane_runner``, ``transactions``: a lane's work from its start on; its transactions, one after the other.
- ``transformation``, ``trials``, ``dead_letters``: a lane's chunks in the SQL; the topics of failed records.
- ``lane_partitions``, ``copy_watch``: a lane's partitions, read, stopped or excluded; the watch over its copies.
- ``admission``, ``copies``: admission of partitions, after a check of their copies' ends (invariants H and J).
"""
