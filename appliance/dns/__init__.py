"""The DNS shim: a query becomes an answer, a forward or a refusal.

- ``wire``, ``question``, ``answers``, ``replies``: pure, bytes and values in and out.
- ``server``, ``responder``, ``binding``, ``framing``: the shim on its sockets.
- ``exchange``, ``upstream``, ``stub``: asking other servers.
- ``addresses``: which loopback address a name gets.
"""
