"""From the source's leaders to buffered batches.

- ``source_reader``: all that one task reads.
- ``fetcher``, ``fetch_sizer``: one leader, and how much to ask of it at once.
- ``buffer``, ``buffer_budget``: one partition, and the memory of all.
- ``allowance``: the bytes that may be read now: a token bucket.
- ``leaders``, ``truncation``: leaders that are older than a known one, and logs that lost what was copied (KIP-320).
"""
