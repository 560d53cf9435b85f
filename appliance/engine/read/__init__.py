"""Read from the source's leaders into buffered batches.

- ``source_reader``: all reading of one task.
- ``fetcher``, ``fetch_sizer``: one leader, and the size of its Fetches.
- ``buffer``, ``buffer_budget``: one partition, and the bytes of all buffers.
- ``leaders``: the newest leader of a partition, and the losses that it alone knows (KIP-320).
"""
