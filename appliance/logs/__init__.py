"""Reading the logs of a source partition and of its copy side by side.

- ``reader``, ``side``: the committed batches of one partition, and those that are not yet compared.
- ``beginning``: the first offset at which a comparison can begin.
- ``model``: streams of records, aligned, paired and compared; no IO.
"""
