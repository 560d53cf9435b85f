"""Identity by TLS: for the tunnel, and for the tasks of a Spark cluster.

- ``certificates``, ``identity``: the link's key, both ends' certificates, made or read, and what each accepts.
- ``first_flight``, ``proof_check``: the proof in a client's first bytes that it knows the secret.
- ``engine``: TLS as a function of bytes.
"""
