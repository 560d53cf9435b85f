"""The diagnosis: each step of the path is tried from one VM, with a verdict and a remedy.

- ``command``, ``step``, ``diagnosis``: runs the steps in order, and prints the results.
- ``source_side``, ``destination_side``: the steps of each VM.
- ``order_side``: the steps of a VM of a total order.
- ``brokers``: name, TCP, TLS, SASL and API versions of every broker of one cluster.
- ``tunnel``, ``clock``: the tunnel, the names that SOURCE_BROKER_PATTERN admits, the VM's clock.
- ``source_topics``, ``destination_rights``: the rights at the source and at the destination, and the table of all.
- ``trial_write``: a record written at the destination, and read back.
- ``optional_rights``: the rights for ACLs and groups, and for failing back.
"""
