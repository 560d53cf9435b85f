"""Limits of the costs of strangers and peers.

- ``connection_limit``: connections carried at once, and a short queue.
- ``pending_handshakes``: connections that have not proved themselves, their number and their rate.
- ``fd_limit``: file descriptors.
- ``breaker``: the pauses between tries while the server is away.
"""
