"""Failing over and back: what clients need at the destination beside the copies.

- ``model``: the plan of a group; no IO.
- ``link_states``: states of copies, changed in every lane.
- ``command``, ``operation``: ``appliance pause``, ``failover``, ``promote``, ``rm-topic``, ``link``; one run of them.
- ``pause``, ``promotion``, ``removal``, ``deletion``: what they do.
- ``source_transactions``: the search for transactions that were copied in part.
- ``source_logs``, ``last_sync``: what a promotion asks of the source, and the last round of its groups.
- ``returning_groups``: the groups of a failback, which follow the other way.
- ``group_io``: the groups of one cluster with their offsets, whatever kind they are of.
- ``group_sync``: rounds in which the offsets of groups are read, translated and committed.
- ``group_service``: the same beside the replicator, for ever.
- ``offsets_command``: ``appliance offsets translate``.
- ``mirror_formats``: MirrorMaker 2's topics, for its Java client.
"""
