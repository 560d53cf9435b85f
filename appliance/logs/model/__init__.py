"""Two streams of one partition, compared; no IO.

- ``stream``: committed batches, whole or record by record.
- ``alignment``: where two logs meet that begin at different records.
- ``comparison``, ``newest``: every record, or the newest of each key.
- ``span``: a range of offsets, and an outcome in a word.
"""
