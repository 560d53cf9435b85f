"""Limits of the costs of strangers and peers.

- ``connection_limit``: connections carried at once, a short queue, and file descriptors.
- ``pending_handshakes``: connections that have not proved themselves, their number and their rate.
- ``counters``: the numbers of one end.
"""
