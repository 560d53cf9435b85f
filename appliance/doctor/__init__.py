"""The diagnosis: every step of the path, tried from one VM, becomes a verdict and what to change.

- ``command``, ``runner``, ``step``, ``report``: the steps in their order, each with its outcome, printed.
- ``source_side``, ``destination_side``: the steps of each VM.
- ``approach``: name, TCP, TLS, SASL and API versions of every broker of one cluster.
- ``tunnel``, ``clock``, ``invented``: the tunnel, the VM's clock, the reach of SOURCE_BROKER_PATTERN.
- ``reading``, ``writing``: the rights at the source, and at the destination.
"""
