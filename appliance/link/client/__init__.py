"""A link's facts in its clusters: read, and written in transactions.

- ``clusters``: the source through shim and tunnel, and the destination.
- ``checkpoint_log``: a partition of the positions topic, read to its end.
- ``registry``: the claims of all links of a destination.
- ``writer``: a transactional producer from one epoch to the next.
- ``retry``: calls again while a coordinator is busy.
"""
