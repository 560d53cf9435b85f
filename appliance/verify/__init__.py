"""The verification: both sides of every copied partition, read and compared.

- ``model``: streams, alignment, comparison and results; no IO.
- ``command``, ``verification``: all partitions, shared out to a few workers.
- ``sql``: the source's records as the link's SQL has made them.
- ``partition``, ``compacted``: one partition, every record of it or the newest of each key.
- ``reader``, ``side``, ``beginning``: the batches of one side, and the first offset to compare.
"""
