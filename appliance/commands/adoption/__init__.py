"""Adoption: this link goes on in place where MirrorMaker 2 has stopped, without copying anything again.

- ``model``: where copying goes on, decided from the records of both logs; no IO.
- ``mirror_maker``: MirrorMaker's committed offsets, and the check that it has stopped.
- ``comparing``: the records of both logs of a partition, as far back as needed.
- ``finding``, ``adopt``: ``appliance adopt``: what it reads, and what it writes.
"""
