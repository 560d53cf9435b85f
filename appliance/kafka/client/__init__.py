"""Connections to brokers, and every call that is made on them.

Every call may raise ``Unreachable``, ``BrokerBusy``, ``BrokerRefused`` and ``PeerError``, defined in
``appliance.errors``. A docstring names them where they mean more than that.

- ``interface``: the engine's view of a cluster; the other files are the real one, and the calls through it.
- ``dial``, ``login``, ``connection``, ``silence``, ``tls_refusal``: one connection, from a name to pipelined requests.
- ``client_tls``, ``tokens``, ``token_fetch``: certificates and tokens to log in with.
- ``cluster``: a cluster as a set of connections, followed through live metadata.
- ``requests``: all leaders asked at once, and many requests sent to one broker at once.
- ``fetch``, ``fetch_session``, ``offsets``: reading.
- ``compacted_log``: a compacted topic, followed.
- ``produce``, ``transactions``: writing, in transactions and without.
- ``topics``, ``configs``, ``config_filter``: topics made, grown and configured.
- ``delete_records``: the beginnings of logs, deleted.
- ``acls``: the ACLs of topics.
- ``open_transactions``: the transactions that hold a last stable offset.
- ``membership``: a process as a member of a group, and the members as anybody sees them.
- ``groups``, ``group_offsets``, ``share_offsets``: consumer groups and share groups, and their offsets.
"""
