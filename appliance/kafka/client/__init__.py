"""Connections to brokers, and every call that is made on them.

- ``dial``, ``login``, ``connection``, ``sending``, ``keepalive``: one connection, from a name to pipelined requests.
- ``cluster``: a cluster as a set of connections, followed through live metadata.
- ``fetch``, ``fetch_session``, ``partition_reader``, ``offsets``, ``leader_epochs``: reading.
- ``produce``, ``transactions``: writing.
- ``topics``, ``configs``, ``config_filter``: topics made, grown and configured.
- ``open_transactions``: the transactions that hold a last stable offset.
"""
