"""A link: its names, its positions, its claims, the topics that hold them, and its two clusters.

The replicator writes them; status, verify and the doctor read them.

- ``handle``: an open link, with its facts as they are now.
- ``model``: values and records; no IO.
- ``client``: reading and writing them in a cluster.
"""
