"""The tunnel's decisions without IO.

- ``connect``: HTTP/1.1 CONNECT inside the TLS.
- ``allowlist``: the targets and addresses that may be dialled.
- ``timeouts``: the longest time of each step of a connection.
"""
