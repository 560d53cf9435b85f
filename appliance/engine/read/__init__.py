"""Read from the source's leaders into buffered batches.

- ``source_reader``, ``router``: all reading of one task; the fetcher of each partition.
- ``fetcher``: one leader.
- ``buffer``, ``buffer_budget``: one partition; the bytes that a Fetch may bring.
- ``leaders``: the newest leader of a partition, and the losses that it alone knows (KIP-320).
"""
