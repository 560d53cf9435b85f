"""The tunnel's decisions without IO.

- ``connect``: HTTP/1.1 CONNECT inside the TLS, and the longest time of each step of a connection.
- ``servers``: the health of each source VM, and their order.
- ``allowlist``: the targets and addresses that may be dialled.
"""
