"""Connections as channels of bytes, each direction ending on its own.

- ``channel``, ``tcp_channel``, ``tls_channel``: a connection, plain, dialled, or with TLS.
- ``listen``: channels accepted, and their tasks.
- ``relay``: two channels become one way for bytes.
- ``memory``, ``jams``: the memory that connections hold, and the reset of those whose receiver does not read.
"""
