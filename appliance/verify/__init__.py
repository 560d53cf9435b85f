"""Proof for the user: both sides of every copied partition are read and compared, whatever the replicator says.

Nothing but the two clusters is asked. Each source partition is read from the start of its log to the last stable
offset that it has when the verification begins, and its copy beside it; the destination is given some seconds to get
that far. *Equal* means that every record of the range that is named was compared, in order: key, value, headers and
timestamp.

- ``stream``: batches of one side become whole batches or records, as the other side needs them.
- ``comparison``: two streams become a count and a digest, or the first difference.
- ``alignment``: where two logs begin that have lost their beginnings at different times.
- ``newest``: what can be compared of a compacted topic: the newest record of each key.
- ``verdict``: what is said of a partition. ``report``: of all of them.
- ``reader`` and ``side`` fetch; ``partition`` and ``compacted`` drive the comparison of one partition; ``verification``
  finds the partitions and shares them out; ``command`` talks to the user.
"""
