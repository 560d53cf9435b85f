"""Failing over and back: the states, groups and offsets that clients need beside the copies.

- ``model``: the plan of a group; no IO.
- ``link_states``: states of copies, changed in every lane.
- ``command``, ``operation``: ``appliance pause``, ``failover``, ``promote``, ``rm-topic``, ``link``; one run of them.
- ``pause``, ``promotion``, ``removal``, ``deletion``: the work of these commands.
- ``source_transactions``: the search for partly copied transactions.
- ``both_logs``, ``last_sync``: a promotion's questions to both clusters, and the last round of its groups.
- ``returning_groups``: the groups of a failback, synced the other way.
- ``group_io``: the groups of one cluster, of any kind, with their offsets.
- ``group_sync``: rounds that read, translate and commit the offsets of groups.
- ``group_places``: the places of groups that each link's sync remembers.
- ``shared_offsets``: the translation of offsets to copies that several links write.
- ``group_service``: the same beside the replicator, continuously.
- ``offsets_command``: ``appliance offsets translate``.
- ``mirror_formats``: MirrorMaker 2's topics, for its Java client.
"""
