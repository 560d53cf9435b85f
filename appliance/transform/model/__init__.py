"""The link's statement, as values; pure.

- ``statement``: its text, its records' columns, and the place of an error in it.
- ``functions``: the functions of Spark SQL that it may use.
"""
