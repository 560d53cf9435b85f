"""Connections as channels of bytes, each direction ending on its own.

- ``channel``, ``tcp_channel``, ``tls_channel``: a connection, plain or with TLS.
- ``dial``, ``listen``: channels made and accepted.
- ``relay``: two channels become one way for bytes.
- ``jams``, ``kernel``, ``waiting``: connections whose receiver does not read, and the memory they hold.
"""
