"""Facts, the snapshot that follows from them, and its forms for people and machines; no IO.

- ``facts``: committed facts of both clusters.
- ``compose``, ``snapshot``: the snapshot, and how it follows from facts.
- ``running``: the part of a snapshot that only the running replicator knows.
- ``messages``: problems and remarks, in sentences.
- ``table``, ``document``, ``metrics``: the snapshot at a terminal, as JSON with its health, as metrics.
"""
