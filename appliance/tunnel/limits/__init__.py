"""Bounds of what strangers and peers can cost.

- ``connection_limit``: connections carried at once, and a short queue.
- ``pending_handshakes``: connections that have not proved themselves.
- ``fd_limit``: file descriptors.
- ``breaker``, ``rate``: when to try a server again, and how often something may happen.
"""
