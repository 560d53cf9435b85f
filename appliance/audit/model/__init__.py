"""The audit table without IO: its rows from the committed positions, its files, and their names.

- ``entries``: the committed records of a lane's log, with their writers and commit times
- ``rows``: the row between two positions of a partition
- ``state``: how far the audit has come, also as text
- ``taking``: the rows that follow from a range of a lane, and the state after them
- ``table``: rows and state as Parquet
- ``files``: the names of files, and which of them hold
- ``progress``: the writer's progress, for the status
"""
