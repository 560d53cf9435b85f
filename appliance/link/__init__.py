"""A link: its names, its positions, its claims, the topics that hold them, and its two clusters.

The replicator writes them; status, verify and the doctor read them. It imports ``kafka`` and ``settings`` alone, and
``dns`` for the resolver.

- ``model``: values and records; no IO.
- ``client``: reading and writing them in a cluster.
"""
