"""A link's facts in its clusters: read, and written in transactions.

Every call may raise ``Unreachable``, ``BrokerBusy``, ``BrokerRefused`` and ``PeerError``, defined in
``appliance.errors``. A docstring names them where they mean more than that.

- ``clusters``: the source through shim and tunnel, and the destination.
- ``checkpoint_log``: a partition of the positions topic, read to its end, once or repeatedly.
- ``log_ends``: the ends of source partitions' logs and of their copies' now.
- ``offset_maps``: the maps of offsets.
- ``registry``: the claims of all links of a destination.
- ``origins``: the lanes that wrote into a cluster, by its topic of producers.
- ``source_rules``: source topics that a link must not copy, by what the source knows of them.
- ``source_places``: places in logs, with their leader epochs.
- ``writer``: a transactional producer from one epoch to the next.
- ``membership``: the group of a link's replicators, of which one copies.
- ``standing_by``: a process that works while it is the active one of its group.
- ``retry``: calls again while a coordinator is busy.
"""
