"""Facts become a snapshot, and a snapshot what people and machines read; no IO.

- ``facts``: committed facts of both clusters.
- ``compose``, ``snapshot``: the snapshot, and how it follows from facts.
- ``messages``: what is wrong, in sentences.
- ``table``, ``document``, ``health``, ``metrics``: the snapshot at a terminal, as JSON, as health, as metrics.
- ``timestamps``: times as people and machines read them.
"""
