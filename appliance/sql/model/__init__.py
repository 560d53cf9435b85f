"""The link's statement, as values; pure.

- ``statement``: its text, its records' columns, and the place of an error in it.
- ``dry_run``: records before and after, side by side.
- ``functions``: the functions of Spark SQL that it may use.
- ``refusals``: what is wrong with a part of a statement, by its name in Catalyst.
"""
