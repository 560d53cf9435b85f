"""The status of a link, from committed facts alone; no replicator need run.

- ``model``: facts, the snapshot, and what it is shown as; no IO.
- ``collect``, ``tail``, ``open_transactions``: one look at both clusters.
- ``watcher``: looks again and again.
- ``command``, ``service``: at the terminal, and over HTTP.
"""
