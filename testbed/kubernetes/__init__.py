"""A real Kubernetes of a single node on this machine, for tests; it needs root and Go.

- ``tools``, ``programs``: its programs, fetched or built once, and kept in the user's cache.
- ``images``, ``pause``: images as archives, and the one that the node needs itself.
- ``layout``, ``components``: addresses, files and command lines.
- ``supervisor``, ``machine``: the processes that start and end it.
- ``node``: a node as tests use it.
"""
