"""The results of a verification; no IO.

- ``report``: the result of one partition, and of all.
"""
