"""Walks the path of the data from one VM, and says at which step it breaks and what to change.

- ``step``, ``walk``: steps as data, what came of each, and who stands on whom.
- ``source_side``, ``destination_side``: the steps of each VM, in order.
- ``tunnel``, ``clock``, ``approach``, ``reading``, ``writing``: what the steps do.
- ``report``, ``command``: a table or JSON.

A diagnosis may run at any time beside the gateway and the replicator, and goes the same ways. It leaves nothing behind:
topics are made for validation only, records are never written, and its transactions, under a transactional id of its
own (``<replicator>.doctor``), are aborted: of one, the positions topic keeps an abort marker, as of any replicator's.
"""
