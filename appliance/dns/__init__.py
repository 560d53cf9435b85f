"""The DNS shim: a query becomes an answer, a forward or a refusal.

Comes in: queries on loopback. Goes out: replies, and forwarded queries to the resolver that the VM had before.

- ``messages``: DNS messages as bytes and values; no IO.
- ``binding``: the sockets, and a loopback address for each broker name, the same after every restart.
- ``server``, ``responder``: one query from its arrival to its reply, with its outcome.
- ``exchange``, ``stub``: questions to other DNS servers, forwarded or our own.
- ``invented``: invented names, resolved to see how far a pattern reaches.
"""
