"""The groups' offsets beside the copies: read, translated and committed.

- ``group_io``: the groups of one cluster, of any kind, with their offsets.
- ``source_groups``: the source's groups, as they were last read.
- ``group_sync``, ``group_service``: the rounds of the sync; the same beside the replicator, continuously.
- ``group_places``: the places of groups that each link's sync remembers.
- ``shared_offsets``: the translation of offsets to copies that several links write.
- ``mirror_formats``: MirrorMaker 2's topics, for its Java client.
- ``model``: the plan of a group; no IO.
"""
