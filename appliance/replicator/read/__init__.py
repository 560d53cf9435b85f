"""Read from the source's leaders into buffered batches.

- ``source_reader``: all that one task reads.
- ``fetcher``, ``fetch_sizer``: one leader, and how much to ask of it at once.
- ``buffer``, ``buffer_budget``: one partition, and the bytes that all may take.
- ``leaders``: the newest leader of a partition, and the losses that it alone can tell (KIP-320).
"""
