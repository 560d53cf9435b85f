"""Two streams of one partition and what is said of them; no IO.

- ``stream``: committed batches, whole or record by record.
- ``alignment``: the place where two logs meet that begin at different records.
- ``comparison``, ``newest``: every record, or the newest of each key.
- ``verdict``, ``report``: the outcome of one partition, and of all.
"""
