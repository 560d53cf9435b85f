"""Facts, the snapshot that follows from them, and its forms for people and machines; no IO.

- ``facts``: committed facts of both clusters.
- ``snapshot``, ``topic_status``: the snapshot; its fields are the keys of the JSON.
- ``compose``, ``compose_partition``: how the snapshot follows from facts.
- ``running``: the part of a snapshot that only the running replicator knows.
- ``messages``, ``state_words``: problems and remarks in sentences, states in words.
- ``table``, ``document``, ``metrics``: the snapshot at a terminal, as JSON with its health, as metrics.
"""
