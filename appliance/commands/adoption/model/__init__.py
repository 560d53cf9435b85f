"""The offsets at which copying goes on in what MirrorMaker 2 has copied; no IO.

- ``connect_offsets``: the offsets that Kafka Connect stores for it.
- ``alignment``: what the copy holds of its source, and its doubles.
- ``newest``: the same for compacted topics.
- ``plan``: the offset from which a partition goes on, or the reason against it.
- ``report``: the outcome of the command, in lines and as JSON.
"""
