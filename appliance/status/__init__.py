"""The status of a link, from committed facts, and from what a running replicator alone knows, if one runs.

- ``model``: facts, the snapshot, and the forms in which it is shown; no IO.
- ``collect``, ``tail``, ``open_transactions``: collect the facts of both clusters.
- ``watcher``: collects again and again, and keeps the newest snapshot.
- ``command``, ``service``: at the terminal, where it asks the running replicator of this VM, and over HTTP.
"""
