"""Record batches as bytes (KIP-98): reading, selecting committed ones, writing; no IO.

- ``batch``: the header of a batch of magic 2, its CRC, its new stamp.
- ``committed``: the batches of a Fetch that a read_committed reader may see, and the transactions that end in them.
- ``outgoing``, ``rebuild``: each batch raw where possible, rebuilt where not.
- ``arrays``: the records of many batches at once, as arrays.
- ``records``, ``varint``: the records in a batch.
- ``decompression``: all codecs, up to a limit.
- ``legacy``: messages of magic 0 and 1 turned into a batch.
- ``lz4``: LZ4 frames block by block.
"""
