"""What docs/ shows of the code; no IO but in ``__main__``.

- ``states``: the drawings of the states of a lane and of a copy.
"""
